/**
 * A program: writes numbered lines to stdout through a line writer, more with each turn of the
 * event loop, and exits when its writer is flushed. It prints one line of JSON to stderr: how many
 * lines were written and dropped.
 */
import { createLineWriter } from '#telemetry/line-writer.ts'

const [turns = 0, linesEach = 0, chars = 0] = Bun.argv.slice(2).map(Number)
let dropped = 0
const writer = createLineWriter(process.stdout, (count) => {
  dropped += count
})
let written = 0
for (let turn = 0; turn < turns; turn++) {
  for (let line = 0; line < linesEach; line++) {
    writer.write(`${written++} ${'x'.repeat(chars)}`)
  }
  await Bun.sleep(1)
}
process.stderr.write(`${JSON.stringify({ written, turns })}\n`)
await writer.flush()
process.stderr.write(`${JSON.stringify({ dropped })}\n`)
process.exit(0)
