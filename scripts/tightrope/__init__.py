"""Tightrope: how fast can a model go before its answers fall?"""

__version__ = "0.1.0"
