import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { rollUp, writeBatch } from '#usage/ledger-store.ts'
import type { UsageRecord } from '#usage/record.ts'
import { annsKey, makeBatch, makeRecord } from './use.ts'

let gateway: Gateway
const ann = userIdOf('ann')
const bob = userIdOf('bob')
const agentId = '0198f3a2-0000-7000-8000-0000000000a2'
const range = 'from=2026-10-01&to=2026-10-03'

/** Of the first day, in the sums; those of the second day are not yet. */
const rolled: UsageRecord[] = [
  makeRecord('2026-10-01T00:00:00Z', { userId: ann, keyId: annsKey, costNanos: 1_500_000 }),
  makeRecord('2026-10-01T00:30:00Z', { userId: ann, estimated: true, retries: 1 }),
  makeRecord('2026-10-01T05:00:00Z', { userId: bob, model: 'n', upstream: 'v', agentId }),
]
const fresh: UsageRecord[] = [
  makeRecord('2026-10-02T05:00:00Z', { userId: ann, requestId: 'req_fresh' }),
  makeRecord('2026-10-02T23:59:59.999Z', {
    userId: bob,
    outcome: 'failed',
    errorKind: 'upstream_error',
    upstream: null,
    upstreamModel: null,
  }),
  makeRecord('2026-10-02T12:00:00Z', {
    userId: null,
    kind: 'transcription',
    model: '=HYPERLINK("x"),\n"quoted"',
    audioMs: 61_500,
    inputTokens: 0,
    outputTokens: 0,
  }),
]

beforeAll(async () => {
  gateway = await startGateway()
  const { database } = gateway.deps
  await writeBatch(database, makeBatch(...rolled))
  while ((await rollUp(database)) > 0);
  await writeBatch(database, makeBatch(...fresh))
})
afterAll(() => gateway.stop())

async function ask(path: string, { as = 'root', accept = '*/*' } = {}) {
  const token = await gateway.token(as === 'root' ? ['admins'] : ['users'], as)
  return gateway.request(path, { headers: { authorization: `Bearer ${token}`, accept } })
}

type Body = Record<string, unknown> & { data: Record<string, unknown>[] }

async function read(path: string, as?: string): Promise<Body> {
  const response = await ask(path, as === undefined ? {} : { as })
  expect(response.status).toBe(200)
  return response.json() as Promise<Body>
}

async function refusal(path: string, as?: string): Promise<string> {
  const response = await ask(path, as === undefined ? {} : { as })
  const { code, param } = Object(await response.json()).error
  return `${response.status} ${code} ${param ?? ''}`.trim()
}

const column = ({ data }: Body, name: string) => data.map((row) => row[name])

describe('GET /v1/usage', () => {
  test('sums rolled up and fresh records by day', async () => {
    const body = await read(`/v1/usage?${range}`)
    expect(body.data).toMatchObject([
      {
        start: '2026-10-02T00:00:00.000Z',
        requests: 3,
        input_tokens: 20,
        audio_seconds: 61.5,
        cost: null,
      },
      {
        start: '2026-10-01T00:00:00.000Z',
        requests: 3,
        estimated_requests: 1,
        retries: 1,
        input_tokens: 30,
        cached_tokens: 12,
        cache_write_tokens: 3,
        output_tokens: 15,
        reasoning_tokens: 6,
        cost: 0.0015,
        duration_seconds: 0.3,
      },
    ])
    expect(body['totals']).toMatchObject({ requests: 6, input_tokens: 50, cost: 0.0015 })
  })

  test.each([
    ['model', 'model', ['=HYPERLINK("x"),\n"quoted"', 'm', 'n']],
    ['user', 'user_id', [null, ...[ann, bob].toSorted()]],
    ['key', 'key_id', [null, annsKey]],
    ['agent', 'agent_id', [null, agentId]],
    ['upstream', 'upstream', [null, 'u', 'v']],
    ['kind', 'kind', ['generation', 'transcription']],
    ['outcome', 'outcome', ['completed', 'failed']],
    ['month', 'start', ['2026-10-01T00:00:00.000Z']],
  ])('groups by %s', async (dimension, field, values) => {
    const body = await read(`/v1/usage?${range}&group_by=${dimension}`)
    expect(column(body, field)).toEqual(values)
    const sum = column(body, 'requests').reduce<number>((total, count) => total + Number(count), 0)
    expect(sum).toBe(6)
  })

  test.each([
    [`user=${ann}`, 3],
    [`user=${ann.toUpperCase()}`, 3],
    [`key=${annsKey}`, 1],
    [`agent=${agentId}`, 1],
    ['model=n', 1],
    ['upstream=v', 1],
    ['kind=transcription', 1],
    ['outcome=failed', 1],
    ['kind=generation&outcome=completed&model=m', 3],
    ['model=absent', 0],
  ])('filters by %s, in sums and in records', async (filter, requests) => {
    const body = await read(`/v1/usage?${range}&${filter}`)
    expect(body['totals']).toMatchObject({ requests })
    expect((await read(`/v1/usage/records?${range}&${filter}`)).data).toHaveLength(requests)
  })

  test('extends the range to whole hours', async () => {
    const body = await read('/v1/usage?from=2026-10-01T00:45:00Z&to=2026-10-01T05:00:00.001Z')
    expect(body).toMatchObject({
      from: '2026-10-01T00:00:00.000Z',
      to: '2026-10-01T06:00:00.000Z',
      totals: { requests: 3 },
    })
    const zoned = await read('/v1/usage?from=2026-10-01T02:00:00%2B02:00&to=2026-10-01T03:00:00Z')
    expect(zoned['totals']).toMatchObject({ requests: 2 })
  })

  test.each([
    ['2026-09-30T23:00:00Z', '2026-10-02T06:00:00Z', 4],
    ['2026-10-01T00:00:00Z', '2026-10-02T00:00:00Z', 3],
    ['2026-10-01T00:00:00Z', '2026-10-01T01:00:00Z', 2],
    ['2026-10-01T01:00:00Z', '2026-10-03T00:00:00Z', 4],
    ['2026-10-01T05:00:00Z', '2026-10-01T06:00:00Z', 1],
  ])('counts each record of %s to %s once, by hours and by days', async (from, to, requests) => {
    for (const dimension of ['hour', 'day', 'month', 'model']) {
      const body = await read(`/v1/usage?from=${from}&to=${to}&group_by=${dimension}`)
      expect(body['totals']).toMatchObject({ requests })
    }
  })

  test('pages through all groups, newest first, then by name', async () => {
    const path = `/v1/usage?${range}&group_by=day,user,model&group_by=outcome`
    const whole = await read(path)
    expect(whole.data.length).toBeGreaterThan(4)
    const paged: unknown[] = []
    let after = ''
    for (let page = 0; page < 10; page++) {
      const { data, has_more, last_id, totals } = await read(`${path}&limit=1${after}`)
      expect(totals).toEqual(whole['totals'])
      paged.push(...data)
      if (has_more === false) break
      after = `&after=${last_id}`
    }
    expect(paged).toEqual(whole.data)
  })

  test('shows only their own usage to users', async () => {
    expect((await read(`/v1/usage?${range}&group_by=user`, 'ann')).data).toMatchObject([
      { user_id: ann, requests: 3 },
    ])
    expect(await read(`/v1/usage?${range}&user=me`, 'bob')).toMatchObject({
      totals: { requests: 2 },
    })
    expect(await refusal(`/v1/usage?${range}&user=${bob}`, 'ann')).toBe('403 permission_denied')
    expect((await read(`/v1/usage?${range}&key=${annsKey}`, 'bob')).data).toEqual([])
    expect(await refusal(`/v1/usage/records?user=${bob}`, 'ann')).toBe('403 permission_denied')
    const records = await read(`/v1/usage/records?${range}`, 'ann')
    expect(new Set(column(records, 'user_id'))).toEqual(new Set([ann]))
  })

  test.each([
    ['group_by=day,hour', '422 unprocessable group_by'],
    ['group_by=weekday', '422 unprocessable group_by'],
    ['group_by=', '422 unprocessable group_by'],
    ['groupby=day', '422 unknown_field groupby'],
    ['from=yesterday', '422 unprocessable from'],
    ['to=2026-02-30', '422 unprocessable to'],
    ['to=2026-11-20T24:00:00Z', '422 unprocessable to'],
    ['to=2026-02-03T10:00', '422 unprocessable to'],
    ['from=2026-10-02&to=2026-10-02', '422 unprocessable from'],
    ['user=ann', '422 unprocessable user'],
    ['kind=chat', '422 unprocessable kind'],
    ['limit=0', '422 unprocessable limit'],
    ['limit=1001', '422 unprocessable limit'],
    ['after=x', '422 unprocessable after'],
    [`after=${Buffer.from('["m"]').toString('base64url')}`, '422 unprocessable after'],
    [
      `group_by=user&after=${Buffer.from('["m"]').toString('base64url')}`,
      '422 unprocessable after',
    ],
    ['format=xml', '422 unprocessable format'],
  ])('refuses %s', async (query, expected) => {
    expect(await refusal(`/v1/usage?${query}`)).toBe(expected)
  })
})

describe('GET /v1/usage/records', () => {
  test('lists records newest first, with every field', async () => {
    const body = await read(`/v1/usage/records?${range}&limit=2`)
    expect(column(body, 'ended_at')).toEqual([
      '2026-10-02T23:59:59.999Z',
      '2026-10-02T12:00:00.000Z',
    ])
    expect(body['has_more']).toBe(true)
    const next = await read(`/v1/usage/records?${range}&after=${body['last_id']}`)
    expect(column(next, 'ended_at')).toEqual([
      '2026-10-02T05:00:00.000Z',
      '2026-10-01T05:00:00.000Z',
      '2026-10-01T00:30:00.000Z',
      '2026-10-01T00:00:00.000Z',
    ])
    expect(next['has_more']).toBe(false)
    expect(next.data[3]).toMatchObject({
      object: 'usage_record',
      kind: 'generation',
      started_at: '2026-09-30T23:59:59.900Z',
      user_id: ann,
      key_id: annsKey,
      upstream: 'u',
      upstream_model: 'm-1',
      cost: 0.0015,
    })
  })

  test('finds the calls of one request', async () => {
    const body = await read(`/v1/usage/records?${range}&request_id=req_fresh`)
    expect(column(body, 'ended_at')).toEqual(['2026-10-02T05:00:00.000Z'])
  })

  test('hides the names of models at upstreams from users', async () => {
    const body = await read(`/v1/usage/records?${range}`, 'ann')
    expect(new Set(column(body, 'upstream_model'))).toEqual(new Set([null]))
  })
})

describe('CSV', () => {
  test('has the columns of the grouping and no formulas', async () => {
    const response = await ask(`/v1/usage?${range}&group_by=kind,model&format=csv`)
    expect(response.headers.get('content-type')).toStartWith('text/csv')
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="usage.csv"')
    const lines = (await response.text()).split('\r\n')
    expect(lines).toEqual([
      'kind,model,requests,estimated_requests,retries,input_tokens,cached_tokens,cache_write_tokens,output_tokens,reasoning_tokens,audio_seconds,cost,duration_seconds',
      'generation,m,4,1,1,40,16,4,20,8,0,0.0015,0.4',
      'generation,n,1,0,0,10,4,1,5,2,0,,0.1',
      `transcription,"'=HYPERLINK(""x""),\n""quoted""",1,0,0,0,4,1,0,2,61.5,,0.1`,
      '',
    ])
  })

  test('holds all records, however many pages', async () => {
    const { database } = gateway.deps
    const many = Array.from({ length: 4_500 }, (_, at) =>
      makeRecord(new Date(Date.UTC(2026, 8, 1) + at * 1_000).toISOString()),
    )
    for (let at = 0; at < many.length; at += 900) {
      await writeBatch(database, makeBatch(...many.slice(at, at + 900)))
    }
    const response = await ask('/v1/usage/records?from=2026-09-01&to=2026-09-02', {
      accept: 'text/csv',
    })
    const [header, ...lines] = (await response.text()).trimEnd().split('\r\n')
    expect(header).toStartWith('id,kind,started_at,ended_at,user_id,')
    expect(new Set(lines.map((line) => line.split(',')[0]))).toEqual(
      new Set(many.map(({ id }) => id)),
    )
    expect(lines).toHaveLength(many.length)
  })
})
