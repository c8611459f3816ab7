import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { call, callTagged } from '../../api/call.ts'
import { consoleNamespace, loadOverrides, type Overrides } from '../../texts/overrides.ts'
import { applyLanguage, overrideTexts, language as shownLanguage, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { saveFile } from '../../ui/download.ts'
import { Checkbox } from '../../ui/field.tsx'
import { Fault } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { useAction, useQuery } from '../../ui/query.ts'
import { announce, announceFault, perform } from '../../ui/toasts.tsx'
import { LanguageChoice } from './language-choice.tsx'
import { TextList } from './text-list.tsx'
import {
  exportOf,
  idOf,
  patchOf,
  placeholderFaults,
  readImport,
  rowsOf,
  type TextDraft,
} from './texts-model.ts'

type Loaded = { overrides: Overrides; catalogue: Overrides; tag: string | null }

async function load(signal: AbortSignal): Promise<Loaded> {
  const [{ data, tag }, catalogue] = await Promise.all([
    callTagged('GET /v1/translations', { signal }),
    call('GET /v1/translations/catalogue', { signal }),
  ])
  return { overrides: data as Overrides, catalogue: catalogue as Overrides, tag }
}

/** What is stored, in the console itself. */
async function showStored(): Promise<void> {
  await applyLanguage(shownLanguage.value)
  await loadOverrides()
}

export function TranslationsPage() {
  const stored = useQuery(load, 'translations')
  const [language, setLanguage] = useState<string>(shownLanguage.value)
  const [draft, setDraft] = useState<TextDraft>({})
  const [isPreview, setPreview] = useState(false)
  const file = useRef<HTMLInputElement>(null)
  const [fault, setFault] = useState<unknown>()
  const [isBusy, run] = useAction()
  const rows = useQuery(
    async () => (stored.data === undefined ? undefined : rowsOf(language, stored.data)),
    `${language} ${stored.data?.tag}`,
  )
  const all = rows.data ?? []
  const count = Object.keys(draft).length
  const faulty = useMemo(
    () => all.filter((row) => placeholderFaults(row.original, draft[idOf(row)] ?? '').length > 0),
    [all, draft],
  )
  usePreview(isPreview && language === shownLanguage.value, draft)
  const change = (id: string, value: string, before: string) => {
    const { [id]: _, ...others } = draft
    setDraft(value === before ? others : { ...others, [id]: value })
  }
  const select = async (next: string) => {
    if (count > 0) {
      const isSure = await confirm({
        title: text('translations.leave_title'),
        consequence: text('translations.leave_consequence', { count }),
        action: text('settings.discard'),
        isDangerous: true,
      })
      if (!isSure) return
    }
    setDraft({})
    setLanguage(next)
  }
  const save = () =>
    run(async () => {
      if (faulty.length > 0) {
        const isSure = await confirm({
          title: text('translations.force_title'),
          consequence: text('translations.force_consequence', {
            keys: faulty.map(({ key }) => key).join(', '),
          }),
          action: text('translations.force'),
          isDangerous: true,
        })
        if (!isSure) return
      }
      try {
        await call('PATCH /v1/translations/{language}', {
          path: { language },
          query: { force: faulty.length > 0 },
          body: patchOf(draft),
          ...(stored.data?.tag ? { headers: { 'if-match': stored.data.tag } } : {}),
        })
        announce(text('translations.saved'))
        setFault(undefined)
        setDraft({})
        stored.reload()
        await showStored()
      } catch (error) {
        setFault(error)
      }
    })
  const reset = async () => {
    const isSure = await confirm({
      title: text('translations.reset_title', { language }),
      consequence: text('translations.reset_consequence'),
      action: text('translations.reset'),
      isDangerous: true,
    })
    if (!isSure) return
    await perform(
      () => call('POST /v1/translations/reset', { body: { language } }),
      text('translations.was_reset', { language }),
    )
    setDraft({})
    stored.reload()
    await showStored()
  }
  const download = (isComplete: boolean) =>
    saveFile(
      new Blob([exportOf(language, all, isComplete)], { type: 'application/json' }),
      `translations-${language}.json`,
    )
  const read = async (given: File | undefined) => {
    const imported = given === undefined ? null : readImport(await given.text(), language)
    if (imported === null) {
      announceFault(new Error(text('translations.import_invalid')))
      return
    }
    const known = new Map(all.map((row) => [idOf(row), row.override ?? row.original]))
    const news = Object.entries(imported).filter(([id, value]) => known.get(id) !== value)
    setDraft({ ...draft, ...Object.fromEntries(news) })
    announce(text('translations.imported', { count: news.length }))
  }
  return (
    <Page
      title={text('translations.title')}
      about={text('translations.about')}
      actions={
        <>
          <Button onClick={() => file.current?.click()}>{text('translations.import')}</Button>
          <Button icon="download" onClick={() => download(false)}>
            {text('translations.export')}
          </Button>
          <Button icon="download" onClick={() => download(true)}>
            {text('translations.export_all')}
          </Button>
          <Button kind="quiet" onClick={() => void reset()}>
            {text('translations.reset')}
          </Button>
        </>
      }
    >
      <input
        ref={file}
        class="visually-hidden"
        type="file"
        accept="application/json,.json"
        aria-label={text('translations.import_file')}
        tabIndex={-1}
        onChange={(event) => {
          void read(event.currentTarget.files?.[0])
          event.currentTarget.value = ''
        }}
      />
      {stored.error !== undefined && <Fault error={stored.error} onRetry={stored.reload} />}
      {fault !== undefined && (
        <Fault
          error={fault}
          onRetry={() => {
            setFault(undefined)
            stored.reload()
          }}
        />
      )}
      <div class="row between filters">
        <LanguageChoice
          language={language}
          known={[
            ...Object.keys(stored.data?.overrides ?? {}),
            ...Object.keys(stored.data?.catalogue ?? {}),
          ]}
          onLanguage={(next) => void select(next)}
        />
        {language === shownLanguage.value && (
          <Checkbox
            label={text('translations.preview')}
            hint={text('translations.preview_hint')}
            checked={isPreview}
            onChecked={setPreview}
          />
        )}
      </div>
      <TextList
        key={language}
        language={language}
        rows={rows.data}
        query={rows}
        draft={draft}
        onChange={change}
      />
      {count > 0 && (
        <section class="save-bar" aria-label={text('settings.unsaved')}>
          <span class="grow" role="status">
            {text('settings.changes', { count })}
            {faulty.length > 0 && ` · ${text('translations.faulty', { count: faulty.length })}`}
          </span>
          <Button onClick={() => setDraft({})}>{text('settings.discard')}</Button>
          <Button kind="primary" disabled={isBusy} onClick={() => void save()}>
            {text('action.save')}
          </Button>
        </section>
      )}
    </Page>
  )
}

/** Shows unsaved texts of the console in the console, until the page is left. */
function usePreview(isOn: boolean, draft: TextDraft): void {
  const texts = JSON.stringify(patchOf(draft)[consoleNamespace] ?? {})
  useEffect(() => {
    if (!isOn) return
    const changed: Record<string, string | null> = JSON.parse(texts)
    const given = Object.entries(changed).flatMap(([key, value]) =>
      value === null ? [] : [[key, value] as const],
    )
    overrideTexts(Object.fromEntries(given))
  }, [isOn, texts])
  // Turned off, or left.
  useEffect(() => {
    if (!isOn) return
    return () => void showStored()
  }, [isOn])
}
