import { Type } from '@sinclair/typebox'
import { section, whole } from './keys.ts'

/** The keys about the state of responses, and about the ways to reach them. */
export const responsesKeys = {
  responses: section('Stored responses, their streams and background work.', {
    ttlS: whole('How long a response is kept after it, or one that follows it, was made.', {
      default: 2_592_000,
      minimum: 1,
      maximum: 315_360_000,
      env: 'SLUICE_RESPONSES_TTL_S',
    }),
    streamTtlS: whole('How long the stream of a finished response can be read again.', {
      default: 86_400,
      minimum: 1,
    }),
    storedCharsMax: whole(
      'The most JSON of the input of one stored response, and of all that it follows.',
      {
        default: 67_108_864,
        minimum: 1024,
      },
    ),
    perOwnerMax: whole('Stored responses of one user; the oldest are dropped.', {
      default: 100_000,
      minimum: 1,
    }),
    chainMax: whole('How many responses may follow one another by previous_response_id.', {
      default: 1_000,
      minimum: 1,
    }),
    conversationItemsMax: whole('The most items of one conversation.', {
      default: 10_000,
      minimum: 1,
    }),
    abandonMs: whole('How long a stored response goes on when nobody reads it any more.', {
      default: 30_000,
      minimum: 0,
    }),
    logBufferCharsMax: whole('Frames of one running stream that are kept in memory.', {
      default: 262_144,
      minimum: 1024,
    }),
    flushMs: whole('How often the streams that run are written to the database.', {
      default: 100,
      minimum: 1,
    }),
    storeWaitMs: whole(
      'How long a response waits for a database that is away, before it goes on unstored.',
      {
        default: 10_000,
        minimum: 0,
      },
    ),
    backgroundRunningMax: whole('Background responses at once in one worker.', {
      default: 64,
      minimum: 1,
    }),
    backgroundPerKeyMax: whole('Background responses of one key that are not finished.', {
      default: 100,
      minimum: 1,
    }),
    lostAfterMs: whole('A worker that gave no sign of life for so long is taken for dead.', {
      default: 6_000,
      minimum: 100,
    }),
  }),
  websocket: section('WebSockets of the model API.', {
    ageMaxMs: whole('How long one connection may live.', { default: 3_600_000, minimum: 10 }),
    idleMs: whole('How long a connection may leave pings unanswered; 8 to 960 whole seconds.', {
      default: 120_000,
      minimum: 10,
    }),
    turnsQueuedMax: whole('Requests of one connection that may wait for the one that runs.', {
      default: 8,
      minimum: 0,
    }),
    memoryCharsMax: whole('What one connection remembers of responses that are not stored.', {
      default: 33_554_432,
      minimum: 1024,
    }),
    memoryTotalCharsMax: whole('What all connections of one worker remember together.', {
      default: 268_435_456,
      minimum: 1024,
    }),
    connectionsMax: whole('Connections at once in one worker; more are refused with 503.', {
      default: 10_000,
      minimum: 1,
    }),
  }),
  sealKeys: Type.Optional(
    Type.String({
      description:
        'Keys, divided by commas, that seal what clients keep for us (reasoning, compactions): the first one seals, all open. Without any, one is made and kept in the database.',
      minLength: 32,
      env: 'SLUICE_SEAL_KEYS',
      secret: true,
    }),
  ),
}
