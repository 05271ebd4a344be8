# shellcheck shell=bash
# node prints the same with buffers, compression, workers and children

prepare() { need node nodejs; }

work() { # ROUNDS
    cat >program.js <<'END'
const crypto = require("crypto"), zlib = require("zlib"), fs = require("fs"), { execFileSync } = require("child_process");
const { Worker } = require("worker_threads");
const rounds = Number(process.argv[2]);
const hash = (data) => crypto.createHash("sha256").update(data).digest("hex").slice(0, 16);
let kept = [];
for (let round = 0; round < rounds; round++) {
    const buffer = Buffer.alloc((round % 7 + 1) * 5_000_000, `round ${round}`);
    const packed = zlib.gzipSync(buffer), brotli = zlib.brotliCompressSync(buffer.subarray(0, 300_000));
    kept.push(packed, new Float64Array(200_000 * (round % 5 + 1)).fill(round));
    if (kept.length > 20) kept = kept.slice(10);
    fs.writeFileSync("data", buffer);
    console.log(round, hash(fs.readFileSync("data")), hash(zlib.gunzipSync(packed)), brotli.length > 0,
        Object.keys(JSON.parse(JSON.stringify(Object.fromEntries([...Array(20_000).keys()].map((i) => ["key" + i, i]))))).length);
}
console.log(execFileSync(process.execPath, ["-p", "6 * 7"]).toString().trim());
const work = "const { parentPort, workerData } = require('worker_threads'); let sum = 0;" +
    "for (let i = 0; i < 20; i++) { const a = new Uint8Array(workerData * 1000000).fill(i); sum += a[i]; } parentPort.postMessage(sum);";
Promise.all([...Array(8).keys()].map((i) => new Promise((done) => new Worker(work, { eval: true, workerData: i + 1 }).on("message", done))))
    .then((sums) => console.log("workers", sums.join(" ")));
END
    node --expose-gc program.js "$1" 2>&1
}

short() { work 3; }
whole() { work 300; }
