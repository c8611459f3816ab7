import { Type } from '@sinclair/typebox'
import { bytes, type Endpoint, endpoint, json, rawBody } from '#api/endpoint.ts'
import { isUpgrade } from '#auth/credentials.ts'
import { basePermission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import { readLongBody } from '#http/long-body.ts'
import { AppError } from '#lib/errors.ts'
import {
  acceptSocket,
  invalidUpgrade,
  type UpgradeDeps,
  upgradeRequired,
} from '#speech/session/socket-endpoints.ts'
import type { Transcriptions } from '#speech/transcriptions/transcriptions.ts'
import type { SpeechChoices } from './choice.ts'
import { openListen } from './listen/dialect.ts'
import { listenExample, listenResponse, transcribeBody } from './listen/file.ts'
import { listenQuery, readListenParameters } from './listen/parameters.ts'
import { openRealtime } from './realtime/dialect.ts'

export type DialectDeps = UpgradeDeps & {
  readonly choices: SpeechChoices
  readonly transcriptions: Transcriptions
  readonly now: () => Date
  readonly config: Pick<Config, 'websocket' | 'speech' | 'files'>
}

const upgradeHeader = Type.Object({ upgrade: Type.String({ description: '`websocket`.' }) })
const socketErrors = { invalid_request: invalidUpgrade, upgrade_required: upgradeRequired }

const realtimeQuery = Type.Object({
  intent: Type.Optional(Type.Literal('transcription')),
  model: Type.Optional(
    Type.String({
      description: 'The name of an engine, or one that selects an engine by language.',
    }),
  ),
  token: Type.Optional(
    Type.String({ description: 'A JWT or an API key, where headers cannot be set.' }),
  ),
})

const listenErrors = {
  invalid_request: [
    invalidUpgrade,
    'The parameter "diarize" is not supported by this gateway.',
    'The parameter "sample_rate" is required for linear16.',
  ],
  model_not_found: 'The model "nova-9" does not exist.',
}

/** Sessions and files of `/v1/stt` and `/v1/audio/transcriptions` in the protocols of other services. */
export function dialectEndpoints(deps: DialectDeps): Endpoint[] {
  const { choices, config, transcriptions, now } = deps
  return [
    endpoint({
      method: 'GET',
      path: '/v1/realtime',
      permission: basePermission,
      authorization: 'handler',
      tag: 'Speech',
      summary: 'Transcribe live speech in the realtime transcription protocol',
      description: realtimeDescription,
      query: { schema: realtimeQuery, read: (parameters) => parameters },
      headers: upgradeHeader,
      responses: { 101: { description: 'The socket is open; `session.created` follows.' } },
      errors: socketErrors,
      handle(arrival) {
        const { headers } = arrival.request
        const protocols = headers.get('sec-websocket-protocol') ?? ''
        const beta = headers.get('openai-beta') ?? ''
        const { realtimeIdleMs, sessionMsMax, frameBytesMax } = config.speech
        const dialect = openRealtime({
          choices,
          parameters: arrival.query,
          isBeta: beta.includes('realtime=v1') || protocols.includes('openai-beta.realtime-v1'),
          idleMs: realtimeIdleMs,
          now,
          sessionMsMax,
          frameBytesMax,
        })
        return acceptSocket(deps, arrival, dialect)
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/listen',
      permission: basePermission,
      tag: 'Speech',
      summary: 'Transcribe live speech in the protocol of Deepgram',
      description: listenDescription,
      query: { schema: listenQuery, read: (parameters) => parameters },
      headers: upgradeHeader,
      responses: { 101: { description: 'The socket is open.' } },
      errors: { ...listenErrors, upgrade_required: upgradeRequired },
      handle(arrival) {
        const { query, context, request } = arrival
        if (!isUpgrade(request)) throw new AppError('upgrade_required', upgradeRequired)
        const parameters = readListenParameters(query, choices, context.principal)
        const { requestId } = context
        return acceptSocket(deps, arrival, openListen({ parameters, requestId, now }))
      },
    }),

    endpoint({
      method: 'POST',
      path: '/v1/listen',
      permission: basePermission,
      tag: 'Speech',
      summary: 'Transcribe a file in the protocol of Deepgram',
      description: listenFileDescription,
      query: { schema: listenQuery, read: (parameters) => parameters },
      body: rawBody(bytes('application/octet-stream', 'audio/wav', 'audio/mpeg', 'audio/ogg')),
      responses: {
        200: { description: 'The transcript.', content: json(listenResponse, listenExample) },
      },
      errors: listenErrors,
      async handle({ query, context, request, server }) {
        const parameters = readListenParameters(query, choices, context.principal)
        server?.timeout(request, 0)
        const limits = { gapMs: config.files.uploadGapMs, totalMs: config.speech.fileMs }
        const body = readLongBody(request, limits)
        return transcribeBody(
          { transcriptions, config, now },
          { parameters, context, request, body },
        )
      },
    }),
  ]
}

const realtimeDescription = `The protocol of OpenAI's realtime transcription, in its present and its older form, over the sessions of
\`/v1/stt\`. Events of the client: \`session.update\` (or \`transcription_session.update\`), \`input_audio_buffer.append\`,
\`input_audio_buffer.commit\` and \`input_audio_buffer.clear\`. With \`turn_detection\` a turn ends where the speaker pauses;
with null, where the client commits. Errors are \`error\` events; most do not end the session. docs/speech-dialects.md lists
what is supported.`

const listenDescription = `Deepgram's streaming protocol over the sessions of \`/v1/stt\`. The server sends \`Results\`, \`SpeechStarted\`,
\`UtteranceEnd\` and, last, \`Metadata\`; the client sends audio, \`KeepAlive\`, \`Finalize\` and \`CloseStream\`. A parameter
that asks for something else is refused with status 400 and an error in Deepgram's shape. The credential is
\`Authorization: Token <key>\` or the subprotocols \`token, <key>\`.`

const listenFileDescription = `Transcribes the body of the request: WAV, MP3, or Opus in Ogg or WebM. Files at a URL and raw samples are
refused.`
