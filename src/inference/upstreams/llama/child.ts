/**
 * The process of one model, started by `model-process.ts`. It loads the model and serves calls until
 * the gateway disconnects or kills it. A crash of the native code ends only this process.
 */
import { serveGateway } from '#lib/compute-process.ts'
import { countPrompt, generate } from './child-generation.ts'
import { type LoadedModel, loadModel, ModelLoadError } from './child-model.ts'
import {
  type Ending,
  type FromChild,
  type Prompt,
  type ToChild,
  unacknowledgedPiecesMax,
} from './wire.ts'

type ActiveCall = {
  readonly stopping: AbortController
  /** Pieces that the gateway has not acknowledged. */
  unacknowledged: number
  /** Resumes a call that waits for acknowledgements. */
  wake: () => void
}

const calls = new Map<number, ActiveCall>()
let loaded: LoadedModel | null = null

serveGateway()

process.on('message', (message: ToChild) => {
  switch (message.type) {
    case 'load':
      void load(message)
      return
    case 'generate':
    case 'count':
      void handleCall(message)
      return
    case 'acknowledge': {
      const call = calls.get(message.callId)
      if (call === undefined) return
      call.unacknowledged -= message.pieces
      call.wake()
      return
    }
    case 'stop':
      calls.get(message.callId)?.stopping.abort()
  }
})

async function load(options: Extract<ToChild, { type: 'load' }>): Promise<void> {
  try {
    loaded = await loadModel(options)
    send({ type: 'loaded', contextTokens: loaded.contextTokens })
  } catch (error) {
    const reason = error instanceof ModelLoadError ? error.reason : 'package'
    send({ type: 'load-failed', reason, detail: String(error) })
  }
}

async function handleCall(request: Extract<ToChild, { callId: number; prompt: Prompt }>) {
  const id = request.callId
  const call: ActiveCall = { stopping: new AbortController(), unacknowledged: 0, wake: () => {} }
  call.stopping.signal.addEventListener('abort', () => call.wake())
  calls.set(id, call)
  const ending = await runCall(call, request)
  calls.delete(id)
  send({ type: 'ended', callId: id, ending })
}

async function runCall(
  call: ActiveCall,
  { type, callId: id, prompt }: Extract<ToChild, { callId: number; prompt: Prompt }>,
): Promise<Ending> {
  const { signal } = call.stopping
  try {
    if (loaded === null) return { type: 'failed', message: 'the model is not loaded' }
    if (type === 'count') return countPrompt(loaded, prompt)
    return await generate(loaded, prompt, {
      signal,
      begin: () => send({ type: 'begun', callId: id }),
      emit(piece) {
        call.unacknowledged++
        send({ type: 'piece', callId: id, piece })
      },
      untilReady: () => untilReady(call),
    })
  } catch (error) {
    return signal.aborted ? { type: 'stopped' } : { type: 'failed', message: String(error) }
  }
}

async function untilReady(call: ActiveCall): Promise<void> {
  const { signal } = call.stopping
  while (call.unacknowledged >= unacknowledgedPiecesMax && !signal.aborted) {
    await new Promise<void>((resolve) => {
      call.wake = resolve
    })
  }
  signal.throwIfAborted()
}

function send(message: FromChild): void {
  process.send?.(message)
}
