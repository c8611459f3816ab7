import { Type } from '@sinclair/typebox'
import { entry, reloading, section, text, whole } from '#config/keys.ts'
import type { Config } from '#config/schema.ts'

const languageCode = Type.Union(
  ['cs', 'de', 'el', 'en', 'fr', 'sk'].map((code) => Type.Literal(code)),
)

/** An `[[engine]]` of the file. */
const engineEntry = entry('A speech engine.', {
  name: text('The unique name in the log, in session statistics and for clients.'),
  // The engine registry knows the kinds and their dialects, and checks them: `engineFaults`.
  kind: text(
    'The protocol of a server, a program or the built-in demo; docs/speech.md lists them.',
  ),
  url: Type.Optional(text('The URL of a server: ws://, wss://, http:// or https://.')),
  command: Type.Array(Type.String({ minLength: 1 }), {
    description: 'The program of kind = "exec" and its arguments, without a shell.',
    default: [],
  }),
  languages: Type.Array(languageCode, {
    description: 'The languages that it serves; empty: all.',
    default: [],
  }),
  key: Type.Optional(text('Credential.', { secret: true })),
  keyEnv: Type.Optional(text('Environment variable that contains the credential.')),
  model: Type.Optional(text('The model to request from a server.')),
  dialect: text('The dialect, for kinds that have several; docs/speech.md lists them.', {
    default: 'ga',
  }),
  framed: Type.Boolean({
    description:
      'Whether the program of kind = "exec" reads frames (4 bytes length, 1 byte type) instead of bare samples, which enables finalize.',
    default: false,
  }),
  features: Type.Optional(
    Type.Array(Type.Union(['partials', 'words', 'confidence'].map((name) => Type.Literal(name))), {
      description:
        'Results of a program (kind = "exec") or plain transcription server besides finals: partials, word times, confidence scores. Default: all. The gateway announces these to clients and drops all others.',
    }),
  ),
  sampleRateHz: Type.Optional(
    Type.Integer({
      description: 'The sample rate that it expects; default: that of its kind.',
      minimum: 8_000,
      maximum: 48_000,
    }),
  ),
  sessionsMax: whole('Concurrent sessions per worker.', { default: 64, minimum: 1 }),
  sessionMsMax: whole('Audio per engine session; longer recognitions continue in a new session.', {
    default: 480_000,
    minimum: 1_000,
  }),
  warm: whole('Programs of kind = "exec" that are started in advance.', { default: 1, minimum: 0 }),
  openMs: whole('How long a session may take until it is ready.', { default: 10_000, minimum: 10 }),
  threads: whole('CPU threads of kind = "local"; 0: half of the processors.', {
    default: 0,
    minimum: 0,
    maximum: 1_024,
  }),
  loadMax: Type.Number({
    description:
      'The load of the process of kind = "local" above which sessions are refused with `capacity`: the processing time of a second of speech, as measured, times the sessions. Above 1 if speakers pause: 3 where everybody speaks a third of the time.',
    default: 0.8,
    exclusiveMinimum: 0,
  }),
  paceMax: Type.Number({
    description:
      'The maximum speed, relative to real time, at which a server without acknowledgements receives audio.',
    default: 4,
    minimum: 1,
  }),
})

/** The keys of speech. */
export const speechKeys = {
  engine: reloading(
    Type.Array(engineEntry, {
      description:
        'Speech engines in order of preference. Without any, the built-in demo engine is used.',
      default: [],
    }),
  ),
  speech: section('Limits and deadlines of speech-to-text sessions.', {
    sessionsMax: whole(
      'Concurrent sessions per worker; further ones are refused with `capacity`.',
      {
        default: 1_000,
        minimum: 1,
      },
    ),
    sessionsPerUserMax: whole('Concurrent sessions per user and worker.', {
      default: 100,
      minimum: 1,
    }),
    queueBytesMax: whole('Undecoded audio per session; then the client is paused.', {
      default: 65_536,
      minimum: 4_096,
    }),
    queueTotalBytesMax: whole(
      'Undecoded audio of all sessions; above it, each session may queue half and new ones are refused.',
      { default: 134_217_728, minimum: 65_536 },
    ),
    frameBytesMax: whole('The maximum size of an audio message.', {
      default: 262_144,
      minimum: 1_024,
    }),
    inFlightMsMax: whole('Audio that an engine has received but not processed.', {
      default: 2_000,
      minimum: 200,
    }),
    replayMsMax: whole(
      'Audio without a final that is kept for engine failover. An engine with that much must return its finals before it receives more; only one that cannot be asked loses older audio, which is reported.',
      { default: 30_000, minimum: 1_000 },
    ),
    handshakeMs: whole('How long a client may take to send the first message.', {
      default: 10_000,
      minimum: 10,
    }),
    idleMs: whole('How long a client may send neither audio nor a keepalive.', {
      default: 30_000,
      minimum: 10,
    }),
    engineStallMs: whole(
      'How long an engine with unprocessed audio may make no progress; four times as long while it sends anything.',
      {
        default: 30_000,
        minimum: 10,
      },
    ),
    finalizeMs: whole(
      'How long the last finals may take without progress; four times as long while the engine sends anything.',
      {
        default: 60_000,
        minimum: 10,
      },
    ),
    muteMs: whole(
      'Speech without text after which an engine is asked for its finals, and replaced if it has none.',
      {
        default: 15_000,
        minimum: 100,
      },
    ),
    lagMsMax: whole('The lag of a live session that triggers a warning.', {
      default: 15_000,
      minimum: 100,
    }),
    sessionMsMax: whole('The maximum duration of a session.', {
      default: 14_400_000,
      minimum: 10,
    }),
    resumeMs: whole('How long a session stays open for a disconnected client.', {
      default: 30_000,
      minimum: 0,
    }),
    resumeCharsMax: whole(
      'Server frames kept per session for a client that resumes, in characters.',
      {
        default: 262_144,
        minimum: 1_024,
      },
    ),
    rolloversMax: whole(
      'Engine failures within ten minutes, without a final in between, before the session fails.',
      {
        default: 10,
        minimum: 0,
      },
    ),
    readerBytesMax: whole('Frames that may be queued for a client that does not read.', {
      default: 786_432,
      minimum: 65_536,
    }),
    readerStallMs: whole('How long more may be queued before the client is disconnected.', {
      default: 10_000,
      minimum: 10,
    }),
    fileBytesMax: whole('The maximum file size of /v1/audio/transcriptions.', {
      default: 209_715_200,
      minimum: 1_024,
    }),
    fileMs: whole('How long the transcription of a file may take.', {
      default: 600_000,
      minimum: 1_000,
    }),
    models: reloading(
      Type.Array(Type.String({ minLength: 1 }), {
        description:
          'Model names of /v1/audio/transcriptions that select an engine by language. The name of an engine selects that engine.',
        default: ['stt', 'whisper-1', 'gpt-4o-transcribe', 'gpt-4o-mini-transcribe'],
      }),
    ),
    dialectModels: reloading(
      Type.Array(Type.String({ minLength: 1 }), {
        description:
          'Further model names of /v1/realtime and /v1/listen that select an engine by language; they are not listed.',
        default: [
          'gpt-transcribe',
          'gpt-live-transcribe',
          'gpt-realtime-whisper',
          'gpt-4o-mini-transcribe-2025-12-15',
          'nova-3',
          'nova-3-general',
          'nova-2',
          'nova-2-general',
          'nova',
          'enhanced',
          'base',
        ],
      }),
    ),
    speakCharsMax: whole('The longest input of /v1/audio/speech, in characters.', {
      default: 4_096,
      minimum: 1,
    }),
    realtimeIdleMs: whole(
      'How long a client of /v1/realtime may send nothing; its protocol has no keepalive.',
      { default: 900_000, minimum: 10 },
    ),
  }),
}

/** Rules of these keys beyond the schema. */
export function* speechFaults({ engine }: Config): Generator<string> {
  const names = new Set<string>()
  for (const [at, { name }] of engine.entries()) {
    if (names.has(name)) yield `engine.${at}.name: "${name}" is used twice.`
    names.add(name)
  }
}
