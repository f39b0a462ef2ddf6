"""All results on one static page."""
