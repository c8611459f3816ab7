import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { streamEvents } from '#http/event-stream.ts'
import { requestIdOf } from '#http/request-lifecycle.ts'
import type { EventBatch } from '#inference/events.ts'
import type { Generations } from '#inference/generate.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import type { Catalogue } from '#models/catalogue.ts'
import type { Log } from '#telemetry/log.ts'
import { type ParsedCreate, parseCreateResponse } from './parse.ts'
import { createResponseRenderer, type ResponseRenderer } from './render.ts'

export type ResponsesDeps = {
  auth: Auth
  catalogue: Catalogue
  generations: Generations
  config: Pick<Config, 'limits' | 'stream'>
  log: Log
  now: () => Date
}

/** How much of what a caller sent and we left out is logged: so many words, of so many characters. */
const ignoredWordsMax = 20
const ignoredCharsMax = 64

/** `POST /v1/responses`: one generation, streamed or folded into one answer. */
export function responsesRoutes(deps: ResponsesDeps) {
  return new Elysia({ name: 'responses', prefix: '/v1/responses' }).use(guard(deps.auth)).post(
    '/',
    async ({ request, server, set }) => {
      const parsed = parseCreateResponse(
        await readJsonBody(request, deps.config.limits),
        deps.config.limits,
      )
      const requestId = requestIdOf(set)
      logIgnored(deps.log, parsed, requestId)
      // Silence is part of a long generation; the generation's own deadlines bound it.
      server?.timeout(request, 0)
      return respond(deps, parsed, { signal: request.signal, requestId })
    },
    {
      requires: 'can_access_api',
      parse: 'none',
      detail: { tags: ['Responses'], summary: 'Create a response' },
    },
  )
}

async function respond(
  deps: ResponsesDeps,
  parsed: ParsedCreate,
  { signal, requestId }: { signal: AbortSignal; requestId: string },
): Promise<Response> {
  const model = await deps.catalogue.resolve(parsed.request.model)
  if (model.mode !== 'generate') {
    throw new AppError('invalid_request', `The model "${model.id}" does not generate text.`, {
      param: 'model',
    })
  }
  const { controller } = followSignal(signal)
  let committed = false
  const batches = deps.generations.generate({
    request: parsed.request,
    targets: model.targets,
    signal: controller.signal,
    committed: () => committed,
    requestId,
  })
  // What nobody pulls is suspended, where an abort alone does not reach it.
  const end = () => void batches.return().catch(() => {})
  controller.signal.addEventListener('abort', end, { once: true })
  const renderer = createResponseRenderer({
    echo: parsed.echo,
    includeSealed: parsed.includeSealed,
    stream: parsed.stream,
    now: deps.now,
  })
  if (!parsed.stream) return Response.json(await fold(batches, renderer))
  return streamEvents({
    items: batches,
    render: renderer.push,
    fail: (error) => {
      // A generation that fails tells it by an event and its own record; this is a fault of ours.
      if (error.kind === 'internal_error') {
        deps.log.error('a stream failed', { request_id: requestId, cause: error.cause })
      }
      return renderer.fail(error)
    },
    open: renderer.open,
    heartbeat: renderer.heartbeat,
    commit: () => {
      committed = true
    },
    abandon: () => controller.abort(new AppError('client_closed', 'The reader has gone.')),
    ...deps.config.stream,
  })
}

/** The answer without streaming is the folded stream, so the two cannot differ. */
async function fold(batches: AsyncIterable<EventBatch>, renderer: ResponseRenderer) {
  for await (const batch of batches) {
    renderer.push(batch)
    const last = batch.at(-1)
    // Nothing was sent yet, so a failure in the middle is still an HTTP status.
    if (last?.type === 'error') throw last.error
  }
  return renderer.result()
}

/** Tools and items that no upstream takes are no error, but whoever runs this may wonder. */
function logIgnored(log: Log, parsed: ParsedCreate, requestId: string): void {
  const { ignoredTools, ignoredItems } = parsed
  if (ignoredTools.length + ignoredItems.length === 0) return
  const clip = (words: readonly string[]) =>
    words.slice(0, ignoredWordsMax).map((word) => word.slice(0, ignoredCharsMax))
  log.info('parts of a request were left out', {
    request_id: requestId,
    tools: clip(ignoredTools),
    items: clip(ignoredItems),
  })
}
