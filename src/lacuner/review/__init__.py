"""Review of label issues: the queue, the decisions of a reviewer, and a better corpus made from them."""
