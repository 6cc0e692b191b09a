"""The sections of the page: one function each from an opened run to the record that is drawn."""
