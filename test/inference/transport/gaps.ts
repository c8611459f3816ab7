import type { TransportKind } from '#inference/transport/create-transport.ts'

/**
 * A test that a transport cannot pass. `fails`: it is run, and must fail. Otherwise it would hang
 * or pass sometimes, and is not run.
 */
export type Gap = { readonly why: string; readonly run: 'fails' | 'not' }

/** By file and by name of the test. */
type Gaps = Readonly<Record<string, Readonly<Record<string, Gap>>>>

const fails = (why: string): Gap => ({ why, run: 'fails' })
const hangs = (why: string): Gap => ({ why, run: 'not' })
const varies = (why: string): Gap => ({ why, run: 'not' })

const unknownReuse = 'fetch does not tell whether a failed request was on a kept connection'
const noConnectDeadline = 'fetch does not tell when it is connected, so there is no deadline for it'
const sentByThread = 'the thread behind fetch may have sent it by then'
const anyEnd = 'fetch takes the size 0 for the end, whatever follows'

/** What Bun's `fetch` does otherwise than our own client. */
const ofFetch: Gaps = {
  'aborts.test.ts': {
    'a request aborted in the tick that sent it sends nothing': varies(sentByThread),
    'a request aborted in the tick that sent it sends nothing over a used connection':
      varies(sentByThread),
  },
  'answers.test.ts': {
    'a body without a length that ends with a reset is truncated': fails(
      'fetch takes every end of the connection for the end of such a body',
    ),
    'a stream that ends inside the last chunk is truncated': fails(anyEnd),
    'a stream that is reset inside the last chunk is truncated': fails(anyEnd),
    'received bytes of a body are delivered before its truncation': varies(
      'fetch forgets what came in the same moment as the end of the connection',
    ),
    'a head of one endless line is an invalid response, and closes the connection': hangs(
      'fetch waits for the end of a status line of any length',
    ),
    'a length and chunks is an invalid response, and closes the connection': hangs(
      'fetch reads the chunks and passes over the length',
    ),
  },
  'connecting.test.ts': {
    'an upstream that listens but does not speak TLS in time fails at the deadline':
      hangs(noConnectDeadline),
    'connecting has a deadline': hangs(noConnectDeadline),
  },
  'connections.test.ts': {
    'idle connections are closed after the timeout': hangs(
      'fetch keeps a connection some seconds longer than configured',
    ),
    'a request on a kept connection is sent again if the server closes it': fails(unknownReuse),
    'a request on a kept connection is sent again if the server resets it': fails(unknownReuse),
    'a request is retried once only': fails(unknownReuse),
    'a stale connection is logged without path and headers': fails(unknownReuse),
  },
  'requests.test.ts': {
    'a request has no unexpected headers': fails('fetch adds accept: */*'),
  },
  'tls.test.ts': {
    'a stale TLS connection is replaced': fails(unknownReuse),
  },
}

export const gaps: Readonly<Record<TransportKind, Gaps>> = { socket: {}, fetch: ofFetch }
