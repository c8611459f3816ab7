import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { ConfigFileKey, ConfigReload } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox, TextField } from '../../ui/field.tsx'
import { Empty, Fault, Notice } from '../../ui/notice.tsx'
import { useAction, useQuery } from '../../ui/query.ts'
import { type Column, Table } from '../../ui/table.tsx'

/** What the file and the environment set, which a restart or a reload changes. */
export function FileKeys() {
  const query = useQuery(
    async (signal) => (await call('GET /v1/config/file', { signal })).data,
    'file',
  )
  const [search, setSearch] = useState('')
  const [isSetOnly, setSetOnly] = useState(true)
  const [report, setReport] = useState<{ done: ConfigReload } | { fault: unknown } | null>(null)
  const [isBusy, run] = useAction()
  const reload = () =>
    run(async () => {
      try {
        setReport({ done: await call('POST /v1/config/reload') })
        query.reload()
      } catch (fault) {
        setReport({ fault })
      }
    })
  const searched = search.trim().toLowerCase()
  const rows = query.data?.filter(
    ({ key, description, source }) =>
      (!isSetOnly || source !== 'default') &&
      `${key} ${description}`.toLowerCase().includes(searched),
  )
  const columns: readonly Column<ConfigFileKey>[] = [
    {
      name: 'key',
      label: text('settings.key'),
      cell: ({ key, description }) => (
        <div class="breaking">
          <code>{key}</code>
          <div class="small muted">{description}</div>
        </div>
      ),
    },
    {
      name: 'value',
      label: text('settings.value'),
      cell: ({ value, secret }) => (
        <div class="breaking setting-value">
          {secret && value !== null ? (
            <span class="muted">{text('settings.secret')}</span>
          ) : value === null ? (
            <span class="muted">{text('schema.not_set')}</span>
          ) : (
            <code>{typeof value === 'string' ? value : JSON.stringify(value)}</code>
          )}
        </div>
      ),
    },
    {
      name: 'source',
      label: text('settings.source'),
      cell: ({ source, variable }) => (
        <span class={source === 'default' ? 'tag' : 'tag accent'}>
          {variable ?? text(`settings.source.${source}`)}
        </span>
      ),
    },
    {
      name: 'restart',
      label: text('settings.takes_effect'),
      cell: ({ restart_required: isRestart }) => (
        <span class="nowrap">
          {text(isRestart ? 'settings.with_restart' : 'settings.with_reload')}
        </span>
      ),
    },
  ]
  return (
    <div class="stack">
      <p class="muted prose">{text('settings.file_about')}</p>
      <div class="row between filters">
        <TextField
          type="search"
          label={text('settings.file_search')}
          value={search}
          onValue={setSearch}
        />
        <Checkbox
          label={text('settings.file_set_only')}
          checked={isSetOnly}
          onChecked={setSetOnly}
        />
        <Button icon="refresh" disabled={isBusy} onClick={() => void reload()}>
          {text('settings.reload')}
        </Button>
      </div>
      {report !== null &&
        ('fault' in report ? <Fault error={report.fault} /> : <Reloaded report={report.done} />)}
      <Table
        label={text('settings.tab.file')}
        columns={columns}
        query={query}
        rows={rows}
        keyOf={({ key }) => key}
        empty={
          <Empty icon="settings" title={text('settings.file_none')}>
            {text('settings.file_none_hint')}
          </Empty>
        }
      />
    </div>
  )
}

function Reloaded({ report }: { report: ConfigReload }) {
  const { changed, needs_restart: restart, workers } = report
  const failed = workers.filter(({ error }) => error !== null)
  return (
    <Notice kind={failed.length > 0 ? 'bad' : restart.length > 0 ? 'warn' : 'info'}>
      <strong>
        {changed.length === 0
          ? text('settings.reload_same')
          : text('settings.reload_changed', { keys: changed.map(({ key }) => key).join(', ') })}
      </strong>
      {restart.length > 0 && <p>{text('settings.reload_restart', { keys: restart.join(', ') })}</p>}
      {failed.map(({ worker, error }) => (
        <p key={worker}>
          {worker}: {error}
        </p>
      ))}
    </Notice>
  )
}
