/**
 * The process of one embedding or rerank model, started by `encoder-process.ts`. It loads the model
 * and runs it until the gateway disconnects or kills it. A crash of the native code ends only this
 * process.
 */
import { constants, setPriority } from 'node:os'
import { type Encoder, loadEncoder, RuntimeLoadError } from './encoder.ts'
import type { FromChild, ToChild } from './wire.ts'

let encoder: Encoder | null = null

// Native threads may be running, and there is no state to save.
const end = () => process.kill(process.pid, 'SIGKILL')
process.on('disconnect', end)
if (!process.connected) end()
// A signal to the process group is for the gateway, which stops its children itself.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
// The gateway must stay responsive while a model runs.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL)

process.on('message', async (message: ToChild) => {
  send(await handle(message))
})

async function handle(message: ToChild): Promise<FromChild> {
  if (message.type === 'load') {
    try {
      encoder = await loadEncoder(message)
      return { type: 'loaded', tokensMax: message.manifest.tokensMax }
    } catch (error) {
      const reason = error instanceof RuntimeLoadError ? 'package' : 'model'
      return { type: 'load-failed', reason, detail: String(error) }
    }
  }
  try {
    if (encoder === null) return { type: 'failed', detail: 'the model is not loaded' }
    return { type: 'ended', result: await encoder.run(message.run) }
  } catch (error) {
    return { type: 'failed', detail: String(error) }
  }
}

function send(message: FromChild): void {
  process.send?.(message)
}
