/**
 * The process of one embedding or rerank model, started by `encoder-process.ts`. It loads the model
 * and runs it until the gateway disconnects or kills it. A crash of the native code ends only this
 * process.
 */
import { serveGateway } from '#lib/compute-process.ts'
import { type Encoder, loadEncoder, RuntimeLoadError } from './encoder.ts'
import type { FromChild, ToChild } from './wire.ts'

let encoder: Encoder | null = null

serveGateway()

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
