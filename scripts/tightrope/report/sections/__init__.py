"""Template data of each section of the page."""
