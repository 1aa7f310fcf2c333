"""Where Chromium is, for the tests that look at a page."""

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NOT_RUN = "the tests in a browser were not run: there is no Chromium; `make setup-system` installs it"
# It may be started by root, and reaches for no network of its own.
OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def home():
    """Return the path of the browser."""
    return next(filter(None, map(shutil.which, NAMES)), None)


if __name__ == "__main__":
    place = home()
    print(f"Chromium for the report: {place}" if place else "no Chromium is here yet")
    raise SystemExit(place is None)
