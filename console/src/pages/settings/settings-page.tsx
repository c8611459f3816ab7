import { useState } from 'preact/hooks'
import { text } from '../../texts/texts.ts'
import { Page } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { FileKeys } from './file-keys.tsx'
import { History } from './history.tsx'
import { type Draft, RunTime } from './run-time.tsx'

const tabs = ['run_time', 'file', 'history'] as const

export function SettingsPage() {
  const [tab, setTab] = useState<(typeof tabs)[number]>('run_time')
  // A draft survives a look at the history.
  const [draft, setDraft] = useState<Draft>({})
  return (
    <Page title={text('settings.title')} about={text('settings.about')}>
      <Tabs
        label={text('settings.title')}
        tabs={tabs.map((name) => ({ name, label: text(`settings.tab.${name}`) }))}
        selected={tab}
        onSelect={setTab}
      >
        {tab === 'run_time' && <RunTime draft={draft} onDraft={setDraft} />}
        {tab === 'file' && <FileKeys />}
        {tab === 'history' && <History onRollback={() => setDraft({})} />}
      </Tabs>
    </Page>
  )
}
