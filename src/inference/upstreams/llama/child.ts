/**
 * The process of one model, for `model-process.ts`: it loads the model, and answers until whoever
 * started it is gone or ends it. A fault of the native code ends this process alone.
 */
import { constants, setPriority } from 'node:os'
import { countPrompt, generate } from './child-generation.ts'
import { type LoadedModel, loadModel, Unloadable } from './child-model.ts'
import { type Ending, type FromChild, type Prompt, piecesAheadMax, type ToChild } from './wire.ts'

type Exchange = {
  readonly stopping: AbortController
  /** Pieces that the gateway has not taken. */
  ahead: number
  /** Wakes who waits for room. */
  wake: () => void
}

const exchanges = new Map<number, Exchange>()
let loaded: LoadedModel | null = null

// Native threads may be at work, and nothing is left to be saved.
const end = () => process.kill(process.pid, 'SIGKILL')
process.on('disconnect', end)
if (!process.connected) end()
// Who stops the whole group of processes means the one that started us, which will decide.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
// A gateway with a model at work must still answer others.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL)

process.on('message', (message: ToChild) => {
  switch (message.type) {
    case 'load':
      void load(message)
      return
    case 'generate':
    case 'count':
      void answer(message)
      return
    case 'taken': {
      const exchange = exchanges.get(message.exchange)
      if (exchange === undefined) return
      exchange.ahead -= message.pieces
      exchange.wake()
      return
    }
    case 'stop':
      exchanges.get(message.exchange)?.stopping.abort()
  }
})

async function load(options: Extract<ToChild, { type: 'load' }>): Promise<void> {
  try {
    loaded = await loadModel(options)
    tell({ type: 'loaded', contextTokens: loaded.contextTokens })
  } catch (error) {
    const reason = error instanceof Unloadable ? error.reason : 'package'
    tell({ type: 'unloadable', reason, detail: String(error) })
  }
}

async function answer(asked: Extract<ToChild, { exchange: number; prompt: Prompt }>) {
  const id = asked.exchange
  const exchange: Exchange = { stopping: new AbortController(), ahead: 0, wake: () => {} }
  exchange.stopping.signal.addEventListener('abort', () => exchange.wake())
  exchanges.set(id, exchange)
  const ending = await endingOf(exchange, asked)
  exchanges.delete(id)
  tell({ type: 'ended', exchange: id, ending })
}

async function endingOf(
  exchange: Exchange,
  { type, exchange: id, prompt }: Extract<ToChild, { exchange: number; prompt: Prompt }>,
): Promise<Ending> {
  const { signal } = exchange.stopping
  try {
    if (loaded === null) return { type: 'failed', message: 'the model is not loaded' }
    if (type === 'count') return countPrompt(loaded, prompt)
    return await generate(loaded, prompt, {
      signal,
      begun: () => tell({ type: 'begun', exchange: id }),
      tell(piece) {
        exchange.ahead++
        tell({ type: 'piece', exchange: id, piece })
      },
      room: () => untilRoom(exchange),
    })
  } catch (error) {
    return signal.aborted ? { type: 'stopped' } : { type: 'failed', message: String(error) }
  }
}

async function untilRoom(exchange: Exchange): Promise<void> {
  const { signal } = exchange.stopping
  while (exchange.ahead >= piecesAheadMax && !signal.aborted) {
    await new Promise<void>((resolve) => {
      exchange.wake = resolve
    })
  }
  signal.throwIfAborted()
}

function tell(message: FromChild): void {
  process.send?.(message)
}
