"""A stand-in for NVFlare with the same names at the hooked places, for what a real job cannot be made to do."""

from .api import receive as receive
from .api import send as send
