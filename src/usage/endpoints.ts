import { Type } from '@sinclair/typebox'
import { type CallerContext, type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { listPage, pageResponse } from '#api/shapes.ts'
import { acceptsCsv, csvResponse } from './csv.ts'
import type { Dimension, UsageFilter, UsageGroup } from './grouping.ts'
import { groupQuery, ownUsage, readGroupId, recordQuery } from './query.ts'
import {
  groupColumns,
  recordColumns,
  recordExample,
  recordSchema,
  renderGroup,
  renderRecord,
  renderSums,
  tableExample,
  usageTable,
} from './shapes.ts'
import type { UsageStore } from './usage-store.ts'

type UsageEndpointsDeps = { usage: UsageStore; now: () => Date }

/** Rows per query of a CSV file. */
const csvPageRows = 2_000

const acceptHeader = Type.Object({
  accept: Type.Optional(Type.String({ description: '`text/csv`: all rows as CSV.' })),
})
const csv = { 'text/csv': { schema: Type.String() } }
const whose = `Everybody sees their own usage; with \`can_manage_models\` that of all users. A call is visible
about a second after its end. Times are in UTC.`

/** Who used which model, and how much. */
export function usageEndpoints({ usage, now }: UsageEndpointsDeps): Endpoint[] {
  const readGroups = async (
    grouping: { by: readonly Dimension[]; filter: UsageFilter },
    page: { limit: number; after?: readonly string[] | undefined },
  ) => {
    const table = await usage.group(grouping, page)
    const names = await usage.namesOf(idsIn(table.page.items, grouping.by))
    const items = table.page.items.map((group) => renderGroup(group, grouping.by, names))
    return { items, hasMore: table.page.hasMore, totals: table.totals }
  }

  return [
    endpoint({
      method: 'GET',
      path: '/v1/usage',
      permission: 'can_access_api',
      tag: 'Usage',
      summary: 'Show usage',
      description: `Sums of calls by the fields of \`group_by\`: newest first, then by name. ${whose} \`from\` and \`to\` are
extended to whole hours.`,
      query: groupQuery(now),
      headers: acceptHeader,
      responses: {
        200: {
          description: 'A page of groups, and the sums over all pages.',
          content: { ...json(usageTable, tableExample), ...csv },
        },
      },
      errors: {
        permission_denied: 'Missing permission: can_manage_models.',
        unprocessable: [
          '"group_by" must contain at most one of hour, day and month.',
          '"from" must be before "to".',
        ],
        unknown_field: '"groupby" is not a known field.',
      },
      async handle({ query: { by, limit, after, isCsv, ...query }, context, request }) {
        const filter = ownUsage(query.filter, context)
        const grouping = { by, filter }
        if (isCsv || acceptsCsv(request.headers.get('accept'))) {
          return csvResponse('usage', groupColumns(by), (last) =>
            readGroups(grouping, {
              limit: csvPageRows,
              after: last === null ? undefined : readGroupId(last.id, by),
            }),
          )
        }
        const { items, hasMore, totals } = await readGroups(grouping, { limit, after })
        return {
          ...listPage(items, hasMore),
          from: filter.from.toISOString(),
          to: filter.to.toISOString(),
          totals: renderSums(totals),
        }
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/usage/records',
      permission: 'can_access_api',
      tag: 'Usage',
      summary: 'List usage records',
      description: `One record for each call to a model, speech session and transcribed file, newest first. They hold no
content. A request with hosted tools makes several calls, with the same \`request_id\`. ${whose}`,
      query: recordQuery(now),
      headers: acceptHeader,
      responses: {
        200: {
          description: 'A page of records.',
          content: {
            ...pageResponse('', recordSchema, recordExample).content,
            ...csv,
          },
        },
      },
      errors: {
        permission_denied: 'Missing permission: can_manage_models.',
        unprocessable: '"from" must be before "to".',
        unknown_field: '"model_id" is not a known field.',
      },
      async handle({ query: { limit, after, isCsv, ...query }, context, request }) {
        const filter = ownUsage(query.filter, context)
        const render = (record: Parameters<typeof renderRecord>[0]) =>
          renderRecord(record, isManager(context))
        const read = async (page: { limit: number; after: string | undefined }) => {
          const { items, hasMore } = await usage.records(filter, page)
          return { items: items.map(render), hasMore }
        }
        if (isCsv || acceptsCsv(request.headers.get('accept'))) {
          return csvResponse('usage-records', recordColumns, (last) =>
            read({ limit: csvPageRows, after: last?.id }),
          )
        }
        const { items, hasMore } = await read({ limit, after })
        return listPage(items, hasMore)
      },
    }),
  ]
}

function isManager({ principal }: CallerContext): boolean {
  return principal.permissions.has('can_manage_models')
}

function idsIn(groups: readonly UsageGroup[], by: readonly Dimension[]) {
  const valuesOf = (dimension: Dimension) => {
    const at = by.indexOf(dimension)
    return at === -1 ? [] : [...new Set(groups.map(({ values }) => values[at] ?? ''))]
  }
  return { users: valuesOf('user'), keys: valuesOf('key') }
}
