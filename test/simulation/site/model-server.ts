import { asRecord, parseJson } from '#lib/json.ts'
import { freePort } from '#test/support/free-port.ts'
import { chatCompletion, chatFrames, type Prompt, readPrompt } from './model-output.ts'

/** One call that a model server has received. */
type ServedCall = {
  readonly prompt: Prompt | null
  readonly path: string
  readonly startedMs: number
  /** Infinity while it runs. */
  endedMs: number
}

/** An inference server whose output follows from the prompt. */
export type ModelServer = {
  readonly name: string
  readonly url: string
  readonly served: readonly ServedCall[]
  running(): number
  /** Breaks its connections and refuses new ones. */
  die(): Promise<void>
  comeBack(): void
  /** Accepts requests and never responds. */
  swallow(): void
  /** Responds again, also to the requests that it holds. */
  recover(): void
  stop(): Promise<void>
}

const dimensions = 16
/** A client waits for its stream, so short pauses make more operations. */
const defaultPauseMs = 8

export function startModelServer(name: string, wordPauseMs = defaultPauseMs): ModelServer {
  const port = freePort()
  const served: ServedCall[] = []
  let held = Promise.withResolvers<void>()
  held.resolve()

  const respond = async (request: Request): Promise<Response> => {
    const path = new URL(request.url).pathname
    if (request.method !== 'POST') return Response.json({ object: 'list', data: [] })
    const body = asRecord(parseJson(await request.text()))
    const prompt = readPrompt(body)
    const call: ServedCall = {
      prompt,
      path,
      startedMs: performance.now(),
      endedMs: Number.POSITIVE_INFINITY,
    }
    served.push(call)
    const end = () => {
      call.endedMs = Math.min(call.endedMs, performance.now())
    }
    request.signal.addEventListener('abort', end)
    await Promise.race([held.promise, aborted(request.signal)])
    if (path.endsWith('/embeddings')) return ended(end, embeddings(body))
    if (path.endsWith('/rerank')) return ended(end, ranking(body))
    if (prompt === null)
      return ended(end, Response.json({ error: { message: 'no prompt' } }, { status: 400 }))
    if (prompt.manner === 'error') {
      return ended(end, Response.json({ error: { message: 'the model failed' } }, { status: 500 }))
    }
    if (body['stream'] !== true) {
      await Bun.sleep(prompt.words * wordPauseMs)
      return ended(end, Response.json(chatCompletion(prompt)))
    }
    return new Response(stream(prompt, { signal: request.signal, end, wordPauseMs }), {
      headers: { 'content-type': 'text/event-stream' },
    })
  }
  const listen = () =>
    Bun.serve({ hostname: '127.0.0.1', port, idleTimeout: 0, development: false, fetch: respond })
  let server: ReturnType<typeof listen> | null = listen()
  const die = async () => {
    await server?.stop(true)
    server = null
    for (const call of served) call.endedMs = Math.min(call.endedMs, performance.now())
  }
  return {
    name,
    url: `http://127.0.0.1:${port}/v1`,
    served,
    running: () => served.filter(({ endedMs }) => endedMs === Number.POSITIVE_INFINITY).length,
    die,
    comeBack() {
      server ??= listen()
    },
    swallow() {
      held = Promise.withResolvers()
    },
    recover: () => held.resolve(),
    stop: die,
  }
}

async function* stream(
  prompt: Prompt,
  { signal, end, wordPauseMs }: { signal: AbortSignal; end: () => void; wordPauseMs: number },
) {
  try {
    const frames = chatFrames(prompt)
    const count = prompt.manner === 'cut' ? Math.ceil(frames.length / 2) : frames.length
    for (const frame of frames.slice(0, count)) {
      if (signal.aborted) return
      yield frame
      await Bun.sleep(wordPauseMs)
    }
  } finally {
    end()
  }
}

function ended(end: () => void, response: Response): Response {
  end()
  return response
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
}

/** Texts with common words have near vectors. */
function embeddings(body: Record<string, unknown>): Response {
  const input = body['input']
  const texts = Array.isArray(input) ? input : [input]
  const data = texts.map((text, index) => ({
    object: 'embedding',
    index,
    embedding: vectorOf(String(text)),
  }))
  return Response.json({ object: 'list', data, usage: { prompt_tokens: 5, total_tokens: 5 } })
}

function vectorOf(text: string): number[] {
  const vector = Array.from({ length: dimensions }, () => 0.01)
  for (const word of text.toLowerCase().split(/\W+/)) {
    const at = Number(Bun.hash(word) % BigInt(dimensions))
    vector[at] = (vector[at] ?? 0) + 1
  }
  return vector
}

function ranking(body: Record<string, unknown>): Response {
  const documents = Array.isArray(body['documents']) ? body['documents'] : []
  const results = documents.map((_, index) => ({ index, relevance_score: 1 / (index + 1) }))
  return Response.json({ results, usage: { total_tokens: 5 } })
}
