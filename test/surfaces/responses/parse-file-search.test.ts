import { describe, expect, test } from 'bun:test'
import { expectInvalid, parse, parseOdd, refusalOf } from './parsing.ts'

/** Tools of the type `file_search`, and searches in an input. */

const plain = { type: 'file_search', vector_store_ids: ['docs'] }
const toolOf = (fields: object) =>
  parse({ tools: [{ ...plain, ...fields }] }).hosted.fileSearch.tool

describe('a file_search tool', () => {
  test('requires only the names of collections', () => {
    const { hosted, request, needs, echo } = parse({ tools: [plain] })
    expect(hosted.fileSearch).toEqual({
      tool: {
        collections: ['docs'],
        agentCollections: [],
        filters: [],
        resultsMax: null,
        scoreMin: null,
        rerank: null,
      },
      choice: 'any',
      found: [],
    })
    expect([request.tools, needs.tools, echo.tools]).toEqual([[], [], [plain]])
  })

  test('sets the number of results and the minimum score', () => {
    const ranking = { ranker: 'none', score_threshold: 0.5 }
    const tool = toolOf({ max_num_results: 50, ranking_options: ranking })
    expect(tool).toMatchObject({ resultsMax: 50, scoreMin: 0.5, rerank: false })
    expect(toolOf({ ranking_options: { ranker: 'auto' } })).toMatchObject({ rerank: null })
  })

  test('filters by attributes', () => {
    const filters = {
      type: 'and',
      filters: [
        { type: 'eq', key: 'year', value: 2024 },
        { type: 'in', key: 'lang', value: ['de', 'en'] },
        {
          type: 'or',
          filters: [
            { type: 'eq', key: 'team', value: 'hr' },
            { type: 'eq', key: 'team', value: 'it' },
          ],
        },
      ],
    }
    expect(toolOf({ filters })?.filters).toEqual([
      { field: 'year', operator: '==', value: '2024' },
      { field: 'lang', operator: 'in', value: ['de', 'en'] },
      { field: 'team', operator: 'in', value: ['hr', 'it'] },
    ])
    expect(toolOf({ filters: null })?.filters).toEqual([])
  })

  const ids = 'must be an array of 1 to 32 strings.'
  const name = 'must be the name or id of a collection.'
  const rows: [fields: object, param: string, message: string][] = [
    [{ vector_store_ids: undefined }, 'vector_store_ids', 'is required.'],
    [{ vector_store_ids: [] }, 'vector_store_ids', ids],
    [{ vector_store_ids: ['a', ''] }, 'vector_store_ids[1]', name],
    [{ vector_store_ids: [1] }, 'vector_store_ids[0]', name],
    [{ vector_store_ids: ['a'.repeat(257)] }, 'vector_store_ids[0]', name],
    [{ vector_store_ids: Array(33).fill('a') }, 'vector_store_ids', ids],
    [{ max_num_results: 0 }, 'max_num_results', 'must be an integer from 1 to 50.'],
    [{ max_num_results: 51 }, 'max_num_results', 'must be an integer from 1 to 50.'],
    [{ max_num_results: '3' }, 'max_num_results', 'must be an integer from 1 to 50.'],
    [
      { ranking_options: { score_threshold: 2 } },
      'ranking_options.score_threshold',
      'must be a number from 0 to 1.',
    ],
    [{ filters: 'x' }, 'filters', 'must be an object.'],
  ]
  test.each(rows)('is refused with %j', (fields, field, complaint) => {
    const param = `tools[0].${field}`
    const error = refusalOf({ tools: [{ ...plain, ...fields }] })
    expectInvalid(error, param, `${param} ${complaint}`)
  })

  test.each([
    [{ type: 'gte', key: 'year', value: 3 }, 'filters.type', 'unknown_operator'],
    [{ type: 'eq', key: "a' or 1", value: 'x' }, 'filters.key', 'invalid_request'],
    [{ type: 'eq', key: 'a', value: {} }, 'filters.value', 'filter_type_mismatch'],
    [
      { type: 'in', key: 'a', value: Array(101).fill('b') },
      'filters.value',
      'filter_type_mismatch',
    ],
    [{ type: 'and', filters: [] }, 'filters.filters', 'invalid_request'],
    [
      { type: 'and', filters: [{ type: 'ne', key: 'a', value: 'b' }] },
      'filters.filters[0].type',
      'unknown_operator',
    ],
    [
      {
        type: 'or',
        filters: [
          { type: 'eq', key: 'a', value: 'x' },
          { type: 'eq', key: 'b', value: 'x' },
        ],
      },
      'filters',
      'invalid_request',
    ],
  ])('is refused with the filter %j', (filters, field, code) => {
    const { status, param, wireCode, message } = refusalOf({ tools: [{ ...plain, filters }] })
    expect([status, param, wireCode]).toEqual([400, `tools[0].${field}`, code])
    expect(message).toContain(`"tools[0].${field}"`)
  })

  test('is allowed once per request', () => {
    const error = refusalOf({ tools: [plain, plain] })
    expectInvalid(error, 'tools[1].type', 'tools[1].type "file_search" is used twice.')
  })
})

describe('tool_choice', () => {
  const own = { type: 'function', name: 'look' }
  const choiceOf = (toolChoice: unknown) => {
    const { hosted, request } = parse({ tools: [plain, own], tool_choice: toolChoice })
    return [hosted.fileSearch.choice, request.toolChoice] as const
  }
  const only = (...tools: object[]) => ({ type: 'allowed_tools', tools })

  test('can be auto, force a search, allow or forbid it', () => {
    expect(choiceOf(undefined)).toEqual(['any', { type: 'auto' }])
    expect(choiceOf('required')).toEqual(['any', { type: 'required' }])
    expect(choiceOf('none')).toEqual(['forbidden', { type: 'none' }])
    expect(choiceOf({ type: 'file_search' })).toEqual(['forced', { type: 'required' }])
    const allowed = { type: 'allowed', mode: 'auto' } as const
    expect(choiceOf(only({ type: 'file_search' }))).toEqual(['listed', { ...allowed, tools: [] }])
    expect(choiceOf(only({ type: 'file_search' }, own))).toEqual([
      'listed',
      { ...allowed, tools: [{ name: 'look' }] },
    ])
    expect(choiceOf(only(own))).toEqual(['forbidden', { ...allowed, tools: [{ name: 'look' }] }])
  })

  test('can force a search if that is the only tool', () => {
    const { request } = parse({ tools: [plain], tool_choice: 'required' })
    expect(request.toolChoice).toEqual({ type: 'required' })
  })

  test('cannot force a search that is not a tool of the request', () => {
    const message = 'tool_choice names the tool "file_search", which is not in tools.'
    expectInvalid(refusalOf({ tool_choice: { type: 'file_search' } }), 'tool_choice', message)
  })
})

describe('a search in the input', () => {
  const result = (file: string, text: string) => ({
    file_id: file,
    filename: `${file}.txt`,
    score: 1,
    attributes: {},
    text,
  })
  const call = {
    type: 'file_search_call',
    id: 'fs_1',
    status: 'completed',
    queries: ['leave'],
    results: [result('a', 'Until March.'), result('b', 'By train.')],
  }
  const parseItems = (...items: object[]) =>
    parse({ input: [...items, { role: 'user', content: 'Hi' }] })

  test('becomes a call with its result for the model', () => {
    const { request, hosted, ignoredItems } = parseItems(call)
    expect(request.items.slice(0, 2)).toMatchObject([
      {
        type: 'tool-call',
        callId: 'fs_1',
        name: 'file_search',
        arguments: '{"queries":["leave"]}',
      },
      {
        type: 'tool-result',
        callId: 'fs_1',
        parts: [
          {
            text: expect.stringMatching(
              /marker="【1】" file="a.txt">\nUntil March\.\n[^\n]+\n\n[^\n]+"【2】" file="b.txt">\nBy train\./,
            ),
          },
        ],
      },
    ])
    expect(hosted.fileSearch.found.map(({ fileId }) => fileId)).toEqual(['a', 'b'])
    expect(ignoredItems).toEqual([])
  })

  test('numbers its passages across all searches', () => {
    const again = { ...call, id: 'fs_2', results: [call.results[1], result('c', 'By ship.')] }
    const { request } = parseItems(call, again)
    const [text] = request.items.flatMap((item) =>
      item.type === 'tool-result' && item.callId === 'fs_2' ? item.parts : [],
    )
    expect(text).toMatchObject({
      text: expect.stringMatching(/"【2】" file="b\.txt"[\s\S]+"【3】" file="c\.txt"/),
    })
  })

  test.each([null, undefined])('whose results are %p is reported as such', (results) => {
    const { request, hosted } = parseItems({ ...call, results })
    expect(request.items[1]).toMatchObject({
      parts: [{ text: expect.stringContaining('no longer available') }],
    })
    expect(hosted.fileSearch.found).toEqual([])
  })

  test('whose results have another shape is read as far as possible', () => {
    const results = ['x', null, { text: 1 }, { file_id: 'a', text: 'Until March.' }]
    const input = [
      { ...call, queries: undefined, results },
      { role: 'user', content: 'Hi' },
    ]
    expect(parseOdd({ input }).hosted.fileSearch.found).toEqual([
      { fileId: 'a', filename: 'a', page: null, text: 'Until March.' },
    ])
    const error = refusalOf({ input: [{ ...call, results: 'x' }] })
    expectInvalid(error, 'input[0].results', 'input[0].results must be an array of objects.')
  })
})
