# shellcheck shell=bash
# chromium renders the same page without a screen

prepare() {
    # It downloads hundreds of megabytes: too much for the short selection.
    [ "${FOREIGN-}" = whole ] || command -v chromium >/dev/null || cannot "chromium is for FOREIGN=whole"
    need chromium
}

# The page exercises script, canvas, layout and large buffers; its text has the results.
page() {
    cat <<'END_OF_PAGE'
<!DOCTYPE html><title>flarena</title><pre id=text></pre><canvas id=canvas width=900 height=700></canvas>
<script>
const lines = [], say = (...words) => { lines.push(words.join(" ")); text.textContent = lines.join("\n"); };
let sum = 0, kept = [];
for (let round = 0; round < 60; round++) {
    const numbers = new Float64Array(200000 * (round % 5 + 1)).fill(round);
    kept.push(numbers);
    if (kept.length > 8) kept = kept.slice(4);
    sum += numbers[numbers.length - 1];
}
say("sum", sum);
const pen = canvas.getContext("2d");
for (let i = 0; i < 3000; i++) { pen.fillStyle = `rgb(${i % 256},${i * 7 % 256},${i * 13 % 256})`; pen.fillRect(i % 900, i % 700, 40, 30); }
const pixels = pen.getImageData(0, 0, 900, 700).data;
say("pixels", pixels.reduce((all, one) => (all * 31 + one) % 1000003, 7));
for (let i = 0; i < 3000; i++) document.body.append(Object.assign(document.createElement("p"), { textContent: "line " + i }));
say("height", document.body.scrollHeight > 10000, "elements", document.querySelectorAll("p").length);
</script>
END_OF_PAGE
}

render() { # PAGES
    local number
    page >page.html
    for ((number = 0; number < $1; number++)); do
        timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$WORK/profile$number" \
            --virtual-time-budget=5000 --dump-dom "file://$WORK/page.html" 2>>log | grep -E '^(<.*>)?(sum|pixels|height) '
    done
}

short() { render 1; }
whole() { render 10; }
