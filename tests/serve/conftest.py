"""A real browser, as for the review page."""

from tests.review.conftest import browser

__all__ = ["browser"]
