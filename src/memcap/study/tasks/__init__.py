"""memcap's own measurements, as cells of a study see them.  The machinery knows these files only by their names."""
