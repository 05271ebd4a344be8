"""study_runtime.py docker|k8s FILE: reads a study_runtime.yaml with the code of NVFlare's launcher.

For Kubernetes it writes the pod of each study to /out/STUDY.yaml, and checks that the pod has the environment and the
mount of the library.
"""

import sys

import yaml
from nvflare.app_opt.job_launcher.k8s_launcher import K8sJobHandle
from nvflare.app_opt.job_launcher.study_runtime import load_study_runtime_file

JOB = {
    "name": "job-site-1",
    "container_name": "container-job",
    "command": "nvflare.private.fed.app.client.worker_process",
    "volume_mount_list": [{"name": "workspace-job", "mountPath": "/var/tmp/nvflare/workspace"}],
    "volume_list": [{"name": "workspace-job", "emptyDir": {}}],
    "secret_env": [{"name": "NVFL_TOKEN", "source": "job-secret", "key": "token"}],
    "require_main_container": True,
}


def pod(runtime):
    job = dict(JOB, image=runtime.container_image, env=dict(runtime.env))
    return K8sJobHandle("job", None, job, pod_manifest_template=runtime.pod_template).get_manifest()


def check_init_container(manifest):
    (container,) = manifest["spec"]["containers"]
    preload = {item["name"]: item.get("value") for item in container["env"]}["LD_PRELOAD"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert preload.startswith(mounts["flarena"] + "/"), (preload, mounts)
    assert "flarena" in {volume["name"] for volume in manifest["spec"]["volumes"]}


launcher, file = sys.argv[1:]
for study, runtime in load_study_runtime_file(file, launcher_mode=launcher).items():
    print(study, runtime.container_image, runtime.env)
    assert runtime.container_image
    if launcher == "k8s":
        manifest = pod(runtime)
        if runtime.pod_template:
            check_init_container(manifest)
        with open(f"/out/{study}.yaml", "w") as out:
            yaml.safe_dump(manifest, out)
