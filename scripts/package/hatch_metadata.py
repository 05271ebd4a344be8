"""Adds public address and maintainer, which only the releaser knows, to the metadata (scripts/release.sh)."""

from __future__ import annotations

import os
from email.utils import parseaddr
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

UNNAMED = "The flarena maintainers"


class ReleaserMetadata(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        name, email = parseaddr(os.environ.get("FLARENA_MAINTAINER", ""))
        maintainer = {"name": name or UNNAMED, "email": email}
        metadata["maintainers"] = [{key: value for key, value in maintainer.items() if value}]
        url = os.environ.get("FLARENA_PROJECT_URL", "").rstrip("/")
        metadata["urls"] = {}
        if url:
            metadata["urls"] = {
                "Homepage": url,
                "Source": url,
                "Issues": f"{url}/issues",
                "Changelog": f"{url}/blob/main/CHANGELOG.md",
                "Documentation": f"{url}/blob/main/docs/recipes/README.md",
            }
