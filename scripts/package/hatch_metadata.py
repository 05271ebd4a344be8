"""Adds the project's public address, which only the releaser knows, to the metadata."""

from __future__ import annotations

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ProjectUrls(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        url = os.environ.get("FLARENA_PROJECT_URL", "").rstrip("/")
        metadata["urls"] = {}
        if url:
            metadata["urls"] = {
                "Source": url,
                "Issues": f"{url}/issues",
                "Changelog": f"{url}/blob/main/CHANGELOG.md",
                "Documentation": f"{url}/blob/main/docs/recipes/README.md",
            }
