import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { ConfigRevision } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Empty, Fault } from '../../ui/notice.tsx'
import { usePaged } from '../../ui/paged.ts'
import { useAction, useQuery } from '../../ui/query.ts'
import { type Column, Pager, Table } from '../../ui/table.tsx'
import { announce } from '../../ui/toasts.tsx'
import { SettingDifferences } from './differences.tsx'

/** Who changed what and when, and a way back. */
export function History({ onRollback }: { onRollback: () => void }) {
  const [shown, setShown] = useState<ConfigRevision | null>(null)
  const [target, setTarget] = useState<number | null>(null)
  const query = usePaged(async ({ after, limit }, signal) => {
    const page = await call('GET /v1/config/history', {
      query: { limit, ...(after === undefined ? {} : { after: Number(after) }) },
      signal,
    })
    return { ...page, last_id: page.last_id === null ? null : String(page.last_id) }
  }, 'history')
  const newest = query.pager.cursors.length === 0 ? query.rows?.[0]?.revision : undefined
  const columns: readonly Column<ConfigRevision>[] = [
    {
      name: 'revision',
      label: text('settings.revision'),
      cell: ({ revision }) => <code>{revision}</code>,
    },
    {
      name: 'time',
      label: text('settings.when'),
      cell: ({ created_at: at }) => <span class="nowrap">{format.time(at)}</span>,
    },
    {
      name: 'who',
      label: text('settings.who'),
      cell: ({ actor_name: name, actor_id: id }) => name ?? <code class="small">{id}</code>,
    },
    {
      name: 'keys',
      label: text('settings.what'),
      cell: ({ patch }) => (
        <span class="row">
          {keysOf(patch).map((key) => (
            <span key={key} class="tag">
              {key}
            </span>
          ))}
        </span>
      ),
    },
    {
      name: 'actions',
      label: text('table.actions'),
      align: 'actions',
      cell: (row) => (
        <>
          <Button
            kind="quiet"
            size="small"
            aria-label={text('settings.show_revision', { revision: row.revision })}
            onClick={() => setShown(row)}
          >
            {text('settings.show')}
          </Button>
          <Button
            kind="quiet"
            size="small"
            disabled={row.revision === newest}
            aria-label={text('settings.rollback_to', { revision: row.revision })}
            onClick={() => setTarget(row.revision)}
          >
            {text('settings.rollback')}
          </Button>
        </>
      ),
    },
  ]
  return (
    <div class="stack tight">
      <Table
        label={text('settings.tab.history')}
        columns={columns}
        query={query}
        rows={query.rows}
        keyOf={({ revision }) => String(revision)}
        empty={
          <Empty icon="settings" title={text('settings.history_none')}>
            {text('settings.history_none_hint')}
          </Empty>
        }
      />
      <Pager {...query.pager} />
      {query.rows !== undefined && query.rows.length > 0 && (
        <div>
          <Button size="small" onClick={() => setTarget(0)}>
            {text('settings.rollback_all')}
          </Button>
        </div>
      )}
      {shown !== null && (
        <Dialog
          wide
          title={text('settings.revision_title', { revision: shown.revision })}
          onClose={() => setShown(null)}
        >
          <dl class="facts">
            <dt>{text('settings.when')}</dt>
            <dd>{format.time(shown.created_at)}</dd>
            <dt>{text('settings.who')}</dt>
            <dd>{shown.actor_name ?? shown.actor_id}</dd>
          </dl>
          <SettingDifferences before={shown.before} after={shown.after} />
          <p class="small muted">{text('settings.revision_hint')}</p>
        </Dialog>
      )}
      {target !== null && (
        <RollbackDialog
          revision={target}
          onClose={() => setTarget(null)}
          onDone={() => {
            setTarget(null)
            onRollback()
            query.reload()
          }}
        />
      )}
    </div>
  )
}

/** Names of settings in a patch: `files.max_bytes`, `limits.group`. */
function keysOf(patch: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(patch).flatMap(([name, value]) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.keys(value).map((inner) => `${name}.${inner}`)
      : [name],
  )
}

function RollbackDialog({
  revision,
  onDone,
  onClose,
}: {
  revision: number
  onDone: () => void
  onClose: () => void
}) {
  const body = { revision }
  const trial = useQuery(
    async (signal) =>
      (await call('POST /v1/config/rollback', { body, query: { dry_run: true }, signal })) as {
        before: unknown
        after: unknown
      },
    `rollback ${revision}`,
  )
  const [fault, setFault] = useState<unknown>()
  const [isBusy, run] = useAction()
  const submit = () =>
    run(async () => {
      try {
        await call('POST /v1/config/rollback', { body })
        announce(text('settings.rolled_back'))
        onDone()
      } catch (error) {
        setFault(error)
      }
    })
  const error = fault ?? trial.error
  return (
    <Dialog
      wide
      title={
        revision === 0
          ? text('settings.rollback_all')
          : text('settings.rollback_title', { revision })
      }
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <>
          <Button onClick={onClose}>{text('action.cancel')}</Button>
          <Button kind="primary" type="submit" disabled={isBusy || trial.data === undefined}>
            {text('settings.rollback')}
          </Button>
        </>
      }
    >
      <p>{text('settings.rollback_hint')}</p>
      {error !== undefined && <Fault error={error} />}
      {trial.data !== undefined && (
        <SettingDifferences before={trial.data.before} after={trial.data.after} />
      )}
    </Dialog>
  )
}
