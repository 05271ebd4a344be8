"""A fake of NVFlare with the functions that are hooked, for cases that a real job cannot produce."""

from .api import receive as receive
from .api import send as send
