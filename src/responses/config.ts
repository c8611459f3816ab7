import { reloading, section, whole } from '#config/keys.ts'

/** The keys of stored responses and WebSockets. */
export const responsesKeys = {
  responses: section('Stored responses, their streams and background work.', {
    ttlS: reloading(
      whole('How long a response is kept after it, or its latest follow-up, was created.', {
        default: 2_592_000,
        minimum: 1,
        maximum: 315_360_000,
        env: 'SLUICE_RESPONSES_TTL_S',
      }),
    ),
    streamTtlS: whole('How long the stream of a finished response can be replayed.', {
      default: 86_400,
      minimum: 1,
    }),
    storedCharsMax: whole(
      'Maximum JSON size of the input of a stored response, including its history.',
      {
        default: 67_108_864,
        minimum: 1024,
      },
    ),
    perOwnerMax: whole('Stored responses per user; the oldest are deleted.', {
      default: 100_000,
      minimum: 1,
    }),
    chainMax: whole('Maximum length of a chain of previous_response_id.', {
      default: 1_000,
      minimum: 1,
    }),
    conversationItemsMax: whole('Maximum items per conversation.', {
      default: 10_000,
      minimum: 1,
    }),
    abandonMs: whole('Time without readers after which a stored response is cancelled.', {
      default: 30_000,
      minimum: 0,
    }),
    logBufferCharsMax: whole('Frames of a running stream kept in memory.', {
      default: 262_144,
      minimum: 1024,
    }),
    flushMs: whole('How often running streams are written to the database.', {
      default: 100,
      minimum: 1,
    }),
    storeWaitMs: whole(
      'How long a response waits for an unreachable database before it continues without being stored.',
      {
        default: 10_000,
        minimum: 0,
      },
    ),
    backgroundRunningMax: whole('Concurrent background responses per worker.', {
      default: 64,
      minimum: 1,
    }),
    backgroundPerKeyMax: whole('Unfinished background responses per API key.', {
      default: 100,
      minimum: 1,
    }),
    lostAfterMs: whole(
      'Time without a heartbeat after which a worker without a connection to the database is considered dead.',
      {
        default: 6_000,
        minimum: 100,
      },
    ),
    frozenMaxMs: whole(
      'The same for a worker whose connections to the database are still open: it is suspended and may continue.',
      {
        default: 60_000,
        minimum: 100,
      },
    ),
  }),
  websocket: section('WebSockets of the model API.', {
    ageMaxMs: whole('Maximum lifetime of a connection.', { default: 3_600_000, minimum: 10 }),
    idleMs: whole(
      'How long a connection may leave pings unanswered; rounded to seconds, 8 to 960.',
      {
        default: 120_000,
        minimum: 10,
      },
    ),
    recheckMs: whole('How often the credential of an open connection is checked again.', {
      default: 30_000,
      minimum: 10,
      maximum: 3_600_000,
    }),
    activeMax: whole('Concurrent responses per connection; further requests are queued.', {
      default: 16,
      minimum: 1,
    }),
    lanesMax: whole('Distinct values of stream_id per connection.', {
      default: 32,
      minimum: 1,
    }),
    turnsQueuedMax: whole('Queued requests per connection.', {
      default: 32,
      minimum: 0,
    }),
    memoryCharsMax: whole('History of unstored responses kept per connection.', {
      default: 33_554_432,
      minimum: 1024,
    }),
    memoryTotalCharsMax: whole('The same for all connections of a worker.', {
      default: 268_435_456,
      minimum: 1024,
    }),
    connectionsMax: whole('Concurrent connections per worker; more are refused with 503.', {
      default: 10_000,
      minimum: 1,
    }),
  }),
}
