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
import { type ParsedCreate, parseCreateResponse } from './parse.ts'
import { createResponseRenderer, type ResponseRenderer } from './render.ts'

export type ResponsesDeps = {
  auth: Auth
  catalogue: Catalogue
  generations: Generations
  config: Pick<Config, 'limits' | 'stream'>
  now: () => Date
}

/** `POST /v1/responses`: one generation, streamed or folded into one answer. */
export function responsesRoutes(deps: ResponsesDeps) {
  return new Elysia({ name: 'responses', prefix: '/v1/responses' }).use(guard(deps.auth)).post(
    '/',
    async ({ request, server, set }) => {
      const parsed = parseCreateResponse(
        await readJsonBody(request, deps.config.limits),
        deps.config.limits,
      )
      // Silence is part of a long generation; the generation's own deadlines bound it.
      server?.timeout(request, 0)
      return respond(deps, parsed, { signal: request.signal, requestId: requestIdOf(set) })
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
    fail: renderer.fail,
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
