# shellcheck shell=bash
# numpy passes the same array tests as without the library

prepare() {
    python_packages numpy pytest hypothesis meson ninja # some tests compile a module with the last two
    "$VENV/bin/python" -c 'import numpy._core.tests.test_multiarray' || cannot "this numpy has no tests"
}

tests() { # FILE [OPTION...]
    local file=$1
    shift
    file=$("$VENV/bin/python" -c 'import numpy._core.tests as tests; print(tests.__path__[0])')/$file
    # Some tests run only where enough memory is free, which depends on other programs of the machine.
    NPY_AVAILABLE_MEM=4GB PYTHONHASHSEED=1 PATH=$VENV/bin:$PATH "$VENV/bin/python" -m pytest -q -p no:cacheprovider --junit-xml results.xml --rootdir "$PWD" "$file" "$@" >log 2>&1 ||
        tail -n 40 log >&2
    junit_outcome results.xml
}

short() { tests test_multiarray.py -k 'Resize or ZeroSize or Attributes or ArrayCreationCopy or Pickling'; }

whole() {
    local file
    for file in test_multiarray.py test_mem_policy.py test_mem_overlap.py test_nditer.py test_indexing.py test_memmap.py \
        test_shape_base.py test_dtype.py test_umath.py test_regression.py; do
        echo "$file"
        tests "$file"
    done
}
