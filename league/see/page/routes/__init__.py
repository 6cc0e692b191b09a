"""Routes of the page beyond its sections: sessions, news and operations."""
