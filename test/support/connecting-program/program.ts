/** Opens connections to a port and writes to a file how many of them the kernel has established. */
import { renameSync, writeFileSync } from 'node:fs'

const [port, wanted] = Bun.argv.slice(2, 4).map(Number)
const resultFile = Bun.argv[4] ?? ''
const patienceMs = 3_000

let established = 0
const done = () => {
  writeFileSync(`${resultFile}.part`, String(established))
  renameSync(`${resultFile}.part`, resultFile)
  process.exit(0)
}
setTimeout(done, patienceMs)
for (let count = 0; count < Number(wanted); count++) {
  void Bun.connect({
    hostname: '127.0.0.1',
    port: Number(port),
    socket: {
      data() {},
      open() {
        if (++established === wanted) done()
      },
    },
  }).catch(() => {})
}
