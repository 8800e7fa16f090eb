"""Files between steps: written whole, sealed, verified, or saying why they are not there."""
