"""What the reports have in common: how pictures are drawn, and the page they stand in."""
