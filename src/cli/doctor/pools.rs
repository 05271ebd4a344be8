//! Pools that other libraries of the process keep: a jemalloc in a library, ONNX Runtime's arena, a JVM.

use flarena_shared::kernel_path::file_name;

use super::finding::Finding;
use super::subject::Subject;
use crate::library::search::FILE_NAME;
use crate::output::plain;
use crate::proc::JavaHeap;
use crate::units::bytes;

pub fn jemallocs(subject: &Subject) -> Vec<Finding> {
    let server = subject.bindings.server();
    let serves_malloc = |path: &str| Some(path) == server || file_name(path) == FILE_NAME;
    let jemallocs = subject.bindings.jemallocs.iter();
    let others = jemallocs.filter(|(path, _)| !serves_malloc(path));
    others.map(|(path, name)| jemalloc(path, name)).collect()
}

pub fn onnx_runtime(subject: &Subject) -> Option<Finding> {
    let libraries = ["onnxruntime_pybind11_state", "libonnxruntime.so"];
    let is_there = libraries.iter().any(|name| subject.maps_file(name));
    let large = subject.answer().and_then(|stats| {
        let mut fields = stats.group("recycler");
        fields.find(|(name, _)| *name == "live_bytes")?.1.as_u64()
    });
    is_there.then(|| onnx_arena(large))
}

pub fn java(subject: &Subject) -> Option<Finding> {
    let is_there = subject.maps_file("libjvm.so");
    is_there.then(|| java_machine(java_heap(subject)))
}

/// The free memory of PyTorch's cache on the GPUs, if it is much.
pub fn gpu_cache(subject: &Subject) -> Option<Finding> {
    let stats = subject.answer()?;
    gpu_cache_of(
        stats.number("gpu_reserved_bytes")?,
        stats.number("gpu_allocated_bytes")?,
    )
}

fn gpu_cache_of(reserved: u64, allocated: u64) -> Option<Finding> {
    const LEAST_BYTES: u64 = 256 << 20;
    let free = reserved.saturating_sub(allocated);
    if free < LEAST_BYTES || free < reserved / 3 {
        return None;
    }
    let fact = format!(
        "PyTorch's cache holds {} on the GPUs, {} of them in no tensor now",
        bytes(reserved),
        bytes(free)
    );
    let remedy = "if another process needs them, set cuda_empty_cache=True in the recipe, or call \
                  torch.cuda.empty_cache(). If little returns, the free memory is in pieces: start the process with \
                  PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
    Some(Finding::note("gpu-cache", fact).remedy(remedy).bytes(free))
}

/// `name` is that of its `mallctl`, with the prefix of its build.
fn jemalloc(path: &str, name: &str) -> Finding {
    let prefix = name.strip_suffix("mallctl").unwrap_or_default();
    let variable = format!("{}MALLOC_CONF", plain(prefix).to_uppercase());
    let fact = format!(
        "{} contains a jemalloc ({}), whose memory flarena neither returns nor records",
        plain(path),
        plain(name)
    );
    let remedy = format!(
        "set {variable}=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0; it then returns free memory at rest"
    );
    Finding::note("library-jemalloc", fact).remedy(remedy)
}

/// `large` is the size of all live large blocks, which include the arena.
fn onnx_arena(large: Option<u64>) -> Finding {
    let bound = large.map_or(String::new(), |large| {
        format!(" (at most {}, all live large blocks)", bytes(large))
    });
    let fact = format!(
        "ONNX Runtime's CPU arena keeps the memory of the largest inputs as live memory{bound}"
    );
    let remedy = "set enable_cpu_mem_arena = False in the SessionOptions of each session";
    Finding::note("onnx-arena", fact).remedy(remedy)
}

fn java_machine(heap: Option<JavaHeap>) -> Finding {
    let size = match heap {
        Some(JavaHeap { used, committed }) => format!(
            "its heap has {} in use and {} committed",
            bytes(used),
            bytes(committed)
        ),
        None => "the size of its heap is unknown".to_owned(),
    };
    let fact = format!(
        "a JVM is in this process: {size}, outside malloc. Its direct buffers are live memory in malloc"
    );
    let remedy = "limit both, for example JAVA_TOOL_OPTIONS='-Xmx256m -XX:MaxDirectMemorySize=64m'";
    let finding = Finding::note("java", fact).remedy(remedy);
    match heap {
        Some(heap) => finding.bytes(heap.committed),
        None => finding,
    }
}

/// The counters are a file in `hsperfdata_USER`, which the JVM maps.
fn java_heap(subject: &Subject) -> Option<JavaHeap> {
    let mut maps = subject.maps.iter();
    let counters = maps.find(|map| map.name.contains("/hsperfdata_"))?;
    let file = std::fs::read(subject.process.inside(counters.path())).ok()?;
    JavaHeap::parse(&file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_a_jemalloc_has_its_prefix() {
        for (name, variable) in [
            ("mallctl", "set MALLOC_CONF="),
            ("je_tool_mallctl", "set JE_TOOL_MALLOC_CONF="),
            ("_rjem_mallctl", "set _RJEM_MALLOC_CONF="),
        ] {
            let remedy = jemalloc("/opt/libtool.so", name).remedy.unwrap();
            assert!(remedy.starts_with(variable), "{remedy}");
        }
    }

    #[test]
    fn a_gpu_cache_is_named_if_much_of_it_is_in_no_tensor() {
        let found = gpu_cache_of(3 << 30, 1 << 30).unwrap();
        let part = "3072.0 MB on the GPUs, 2048.0 MB of them in no tensor";
        assert!(found.fact.contains(part), "{}", found.fact);
        assert!(gpu_cache_of(300 << 20, 200 << 20).is_none());
        assert!(gpu_cache_of(9 << 30, 7 << 30).is_none());
    }

    #[test]
    fn a_jvm_is_named_with_the_size_of_its_heap() {
        let heap = JavaHeap {
            used: 200 << 20,
            committed: 300 << 20,
        };
        let found = java_machine(Some(heap));
        let part = "200.0 MB in use and 300.0 MB committed";
        assert!(found.fact.contains(part), "{}", found.fact);
        assert_eq!(found.bytes, Some(300 << 20));
        assert_eq!(java_machine(None).bytes, None);
    }

    #[test]
    fn the_arena_of_onnx_runtime_has_a_bound_and_a_remedy() {
        let found = onnx_arena(Some(120 << 20));
        assert!(found.fact.contains("at most 120.0 MB"), "{}", found.fact);
        assert!(found.remedy.unwrap().contains("enable_cpu_mem_arena"));
        assert!(!onnx_arena(None).fact.contains("at most"));
    }
}
