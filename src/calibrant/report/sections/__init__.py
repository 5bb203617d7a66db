"""Sections: the parts of the page, one question each."""
