"""Code that engines share, per runtime library."""
