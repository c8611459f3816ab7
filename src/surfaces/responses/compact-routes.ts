import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { requestIdOf } from '#http/request-lifecycle.ts'
import type { Generations } from '#inference/generate.ts'
import type { ContentPart } from '#inference/request.ts'
import { assertNever } from '#lib/assert.ts'
import { newId } from '#lib/id.ts'
import { isRecord } from '#lib/json.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { createSeals } from '#sealing/seals.ts'
import type { MessageItem } from './compacted-context.ts'
import { compactContext } from './compaction.ts'
import { responseOperations } from './description/operations.ts'
import { renderUsage } from './render.ts'
import type { Turns } from './turn.ts'

type CompactDeps = {
  auth: Auth
  turns: Pick<Turns, 'read'>
  generations: Pick<Generations, 'generate'>
  sealer: Sealer
  config: Pick<Config, 'limits'>
  now: () => Date
}

/** `POST /v1/responses/compact`: a context in short, as the input of a new chain. */
export function compactRoutes(deps: CompactDeps) {
  return new Elysia({ name: 'compact', prefix: '/v1/responses' }).use(guard(deps.auth)).post(
    '/compact',
    async ({ request, principal, server, set }) => {
      const body = await readJsonBody(request, deps.config.limits)
      // Silence is part of a long generation; the generation's own deadlines bound it.
      server?.timeout(request, 0)
      const { signal } = request
      const requestId = requestIdOf(set)
      const asked = await deps.turns.read(fieldsOf(body), { principal, signal, requestId })
      const { questions, sealed, usage } = await compactContext(
        {
          summarise: deps.generations.generate,
          seal: createSeals(deps.sealer, principal.userId).compaction,
        },
        {
          request: asked.request,
          targets: asked.targets,
          signal,
          requestId,
          committed: () => false,
        },
      )
      return {
        id: newId('resp_'),
        object: 'response.compaction',
        created_at: unixSeconds(deps.now()),
        output: [
          ...questions.map(renderQuestion),
          { id: newId('cmp_'), type: 'compaction', encrypted_content: sealed },
        ],
        usage: renderUsage(usage),
      }
    },
    {
      requires: 'can_access_api',
      parse: 'none',
      detail: responseOperations.compact,
    },
  )
}

/** What this route reads of a body; it stores nothing. */
const fields = ['model', 'input', 'instructions', 'previous_response_id', 'service_tier']

function fieldsOf(body: unknown): unknown {
  if (!isRecord(body)) return body
  const given = Object.entries(body).filter(([name]) => fields.includes(name))
  return { ...Object.fromEntries(given), store: false }
}

function renderQuestion({ parts }: MessageItem): object {
  return {
    id: newId('msg_'),
    type: 'message',
    status: 'completed',
    role: 'user',
    content: parts.map(renderPart),
  }
}

function renderPart(part: ContentPart): object {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { type: 'input_text', text: part.text }
    case 'image':
      return { type: 'input_image', image_url: part.url, detail: part.detail ?? 'auto' }
    case 'file':
      return {
        type: 'input_file',
        ...(part.filename === null ? {} : { filename: part.filename }),
        ...(part.data === null ? {} : { file_data: part.data }),
        ...(part.url === null ? {} : { file_url: part.url }),
      }
    default:
      return assertNever(part)
  }
}
