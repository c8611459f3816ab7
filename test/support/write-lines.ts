/**
 * A program: writes numbered lines to its stdout through a line writer, more with each turn of the
 * event loop, and ends when its writer has done what it can. What it has to say is on stderr, one
 * line of JSON: how many lines were written and reported as dropped, and how many turns it took.
 *
 *   bun write-lines.ts <turns> <lines each> <characters each>
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
