/** A program that runs the model of a file, prints its process id, and waits. */
import { makeContext, makeRequest } from '#test/support/generation.ts'
import { startLlama } from '#test/support/llama.ts'

const world = startLlama()
world.install('given', Bun.argv[2] ?? '')
const batches = world.llama
  .generate(makeRequest(), makeContext({ model: 'given' }))
  [Symbol.asyncIterator]()
await batches.next()
process.stdout.write(`${world.processes()[0]}\n`)
await Bun.sleep(Number.POSITIVE_INFINITY)
