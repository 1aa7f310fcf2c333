"""The scikit-learn transformer."""
