import { Type } from '@sinclair/typebox'
import { entry, section, text, whole } from './keys.ts'

const languageCode = Type.Union(
  ['cs', 'de', 'el', 'en', 'fr', 'sk'].map((code) => Type.Literal(code)),
)

/** An `[[engine]]` of the file. */
const engineEntry = entry('A speech engine.', {
  name: text('How the log, callers and statistics call it; unique.'),
  kind: Type.Union(
    [
      Type.Literal('exec'),
      Type.Literal('vosk'),
      Type.Literal('openai-realtime'),
      Type.Literal('deepgram'),
      Type.Literal('demo'),
    ],
    { description: 'What it is: a program, a server of one of these protocols, or built in.' },
  ),
  url: Type.Optional(text('Where a server answers: ws://, wss://, http:// or https://.')),
  command: Type.Array(Type.String({ minLength: 1 }), {
    description: 'The program of kind = "exec" and its arguments; no shell is between.',
    default: [],
  }),
  languages: Type.Array(languageCode, {
    description: 'What it understands; empty: every language.',
    default: [],
  }),
  key: Type.Optional(text('Its credential.', { secret: true })),
  keyEnv: Type.Optional(text('The environment variable that holds the credential.')),
  model: Type.Optional(text('The model to ask a server for.')),
  dialect: Type.Union(
    [Type.Literal('ga'), Type.Literal('beta'), Type.Literal('vllm'), Type.Literal('nemo')],
    { description: 'What a server of kind = "openai-realtime" speaks.', default: 'ga' },
  ),
  framed: Type.Boolean({
    description:
      'Whether the program of kind = "exec" takes frames (4 bytes of length, 1 of type) instead of bare samples, and so can be asked for finals.',
    default: false,
  }),
  sampleRateHz: Type.Optional(
    Type.Integer({
      description: 'The rate that it wants; without it, the one that its kind is used to.',
      minimum: 8_000,
      maximum: 48_000,
    }),
  ),
  sessionsMax: whole('Sessions at once of each worker.', { default: 64, minimum: 1 }),
  sessionMsMax: whole('The longest session in audio; then a fresh one goes on.', {
    default: 480_000,
    minimum: 1_000,
  }),
  warm: whole('Programs of kind = "exec" that are kept ready.', { default: 1, minimum: 0 }),
  openMs: whole('How long it may take until it is ready.', { default: 10_000, minimum: 10 }),
  paceMax: Type.Number({
    description:
      'How many times faster than speech a server that acknowledges nothing is fed at most.',
    default: 4,
    minimum: 1,
  }),
})

/** The keys about speech. */
export const speechKeys = {
  engine: Type.Array(engineEntry, {
    description: 'Speech engines in order of preference. Without any, the built-in demo answers.',
    default: [],
  }),
  speech: section('Speech-to-text sessions: what each may cost, and when it is given up.', {
    sessionsMax: whole('Sessions at once in one worker; more are told to come back.', {
      default: 1_000,
      minimum: 1,
    }),
    sessionsPerUserMax: whole('Sessions at once of one user in one worker.', {
      default: 100,
      minimum: 1,
    }),
    queueBytesMax: whole('Audio of one session that waits as it came; then its client waits.', {
      default: 65_536,
      minimum: 4_096,
    }),
    queueTotalBytesMax: whole(
      'Audio of all sessions that waits; above it each may keep half, and none is added.',
      { default: 134_217_728, minimum: 65_536 },
    ),
    frameBytesMax: whole('The longest message of a client.', { default: 262_144, minimum: 1_024 }),
    inFlightMsMax: whole('Audio that an engine was given and has not taken in.', {
      default: 2_000,
      minimum: 200,
    }),
    replayMsMax: whole(
      'Audio without a final that is kept for a fresh engine; what is older is lost with its engine, and told.',
      { default: 30_000, minimum: 1_000 },
    ),
    handshakeMs: whole('From the connection to the first message.', {
      default: 10_000,
      minimum: 10,
    }),
    idleMs: whole('How long neither audio nor a keepalive may come.', {
      default: 30_000,
      minimum: 10,
    }),
    engineStallMs: whole('How long an engine with work may make no progress.', {
      default: 30_000,
      minimum: 10,
    }),
    finalizeMs: whole('How long the last finals may take.', { default: 10_000, minimum: 10 }),
    muteMs: whole('Speech that an engine may leave without a word before it is replaced.', {
      default: 15_000,
      minimum: 100,
    }),
    lagMsMax: whole('How far a live session may be behind before its client is told.', {
      default: 15_000,
      minimum: 100,
    }),
    sessionMsMax: whole('The longest session, by the clock.', {
      default: 14_400_000,
      minimum: 10,
    }),
    resumeMs: whole('How long a session waits for its client after the connection was lost.', {
      default: 30_000,
      minimum: 0,
    }),
    resumeCharsMax: whole('Server frames of one session that are kept for a client that resumes.', {
      default: 262_144,
      minimum: 1_024,
    }),
    rolloversMax: whole('Fresh engines for one session, within ten minutes.', {
      default: 10,
      minimum: 0,
    }),
    readerBytesMax: whole('Frames that may wait for a client that does not read.', {
      default: 786_432,
      minimum: 65_536,
    }),
    readerStallMs: whole('How long so much may wait before the client is let go.', {
      default: 10_000,
      minimum: 10,
    }),
    fileBytesMax: whole('The longest file of /v1/audio/transcriptions.', {
      default: 209_715_200,
      minimum: 1_024,
    }),
    fileMs: whole('How long such a file may take.', { default: 600_000, minimum: 1_000 }),
    models: Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Model names of /v1/audio/transcriptions that mean: the engine that serves the language. The name of an engine means that engine.',
      default: ['stt', 'whisper-1', 'gpt-4o-transcribe', 'gpt-4o-mini-transcribe'],
    }),
  }),
}
