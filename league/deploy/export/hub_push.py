"""`league push`: an exported package as a repository of a model hub, from which hf://OWNER/NAME plays."""

from __future__ import annotations

from pathlib import Path

from league.config.contender_names import HUB, hub_endpoint, split_hub
from league.deploy.export.importer import verify_package
from league.envs.plugins import install_extra
from league.errors import LeagueError
from league.policies.frozen import MANIFEST_FILE
from league.policies.package import SUMS_FILE, read_package


def push_package(package: Path, target: str, *, private: bool = False) -> str:
    """Put the files of a package into a repository, made where it is missing; returns its name with the commit.

    The token is that of `hf auth login` or the variable HF_TOKEN. Marks of trust and places of code stay here.

    Args:
      target: hf://OWNER/NAME; a branch may follow as @BRANCH.
    Raises:
      LeagueError: it is no whole package, huggingface_hub is not installed, or the hub refuses.
    """
    repository, branch = split_hub(target)
    verify_package(package)
    files = [SUMS_FILE, MANIFEST_FILE, *read_package(package).files]
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise LeagueError(f"`league push` needs huggingface_hub: {install_extra('hub')}.") from error
    hub = HfApi(endpoint=hub_endpoint(), library_name="league")
    try:
        hub.create_repo(repository, private=private, exist_ok=True)
        made = hub.upload_folder(
            repo_id=repository,
            folder_path=package,
            revision=branch,
            allow_patterns=files,
            commit_message=f"League package {package.name}",
        )
    except Exception as error:  # code of others: its errors have no base of their own
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise LeagueError(f"{hub_endpoint()} did not take {repository}: {first}") from error
    return f"{HUB}{repository}@{made.oid}"
