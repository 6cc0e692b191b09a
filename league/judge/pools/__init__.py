"""A rating pool on disk: frozen policies of several leagues, rated against anchors for weeks."""
