"""Local web servers: what the review page and the HTTP service share."""
