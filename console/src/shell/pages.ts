import type { FunctionComponent } from 'preact'
import type { Permission } from '../session/session.ts'
import type { TextKey } from '../texts/texts.ts'
import type { IconName } from '../ui/icon.tsx'

type Section = 'build' | 'operate' | 'manage'

export type PageEntry = {
  readonly path: string
  readonly title: TextKey
  readonly icon: IconName
  /** Null: a link leads there, not the navigation. */
  readonly section: Section | null
  /** Without it the page is for everybody; the API decides in the end. */
  readonly permission?: Permission
  readonly load: () => Promise<FunctionComponent>
}

export const sections: readonly Section[] = ['build', 'operate', 'manage']

/** Every page of the console, in the order of the navigation. Each is loaded when first opened. */
export const pages: readonly PageEntry[] = [
  {
    path: '/',
    title: 'start.title',
    icon: 'start',
    section: 'build',
    load: async () => (await import('../pages/start/start-page.tsx')).StartPage,
  },
  {
    path: '/playground',
    title: 'playground.title',
    icon: 'playground',
    section: 'build',
    load: async () => (await import('../pages/playground/playground-page.tsx')).PlaygroundPage,
  },
  {
    path: '/speech',
    title: 'speech.title',
    icon: 'speech',
    section: 'build',
    load: async () => (await import('../pages/speech/speech-page.tsx')).SpeechPage,
  },
  {
    path: '/models',
    title: 'models.title',
    icon: 'models',
    section: 'operate',
    load: async () => (await import('../pages/models/models-page.tsx')).ModelsPage,
  },
  {
    path: '/installer',
    title: 'installer.title',
    icon: 'download',
    section: 'operate',
    permission: 'can_manage_models',
    load: async () => (await import('../pages/installer/installer-page.tsx')).InstallerPage,
  },
  {
    path: '/traffic',
    title: 'traffic.title',
    icon: 'traffic',
    section: 'operate',
    permission: 'can_manage_models',
    load: async () => (await import('../pages/traffic/traffic-page.tsx')).TrafficPage,
  },
  {
    path: '/usage',
    title: 'usage.title',
    icon: 'usage',
    section: 'operate',
    load: async () => (await import('../pages/usage/usage-page.tsx')).UsagePage,
  },
  {
    path: '/files',
    title: 'files.title',
    icon: 'files',
    section: 'build',
    load: async () => (await import('../pages/files/files-page.tsx')).FilesPage,
  },
  {
    path: '/collections',
    title: 'collections.title',
    icon: 'search',
    section: 'build',
    load: async () => (await import('../pages/collections/collections-page.tsx')).CollectionsPage,
  },
  {
    path: '/agents',
    title: 'agents.title',
    icon: 'agent',
    section: 'build',
    load: async () => (await import('../pages/agents/agents-page.tsx')).AgentsPage,
  },
  {
    path: '/keys',
    title: 'keys.title',
    icon: 'keys',
    section: 'build',
    load: async () => (await import('../pages/keys/keys-page.tsx')).KeysPage,
  },
  {
    path: '/users',
    title: 'users.title',
    icon: 'users',
    section: 'manage',
    permission: 'can_manage_groups',
    load: async () => (await import('../pages/users/users-page.tsx')).UsersPage,
  },
  {
    path: '/groups',
    title: 'groups.title',
    icon: 'groups',
    section: 'manage',
    permission: 'can_manage_groups',
    load: async () => (await import('../pages/groups/groups-page.tsx')).GroupsPage,
  },
  {
    path: '/limits',
    title: 'limits.title',
    icon: 'limits',
    section: 'operate',
    load: async () => (await import('../pages/limits/limits-page.tsx')).LimitsPage,
  },
  {
    path: '/branding',
    title: 'branding.title',
    icon: 'branding',
    section: 'manage',
    permission: 'can_edit_config',
    load: async () => (await import('../pages/branding/branding-page.tsx')).BrandingPage,
  },
  {
    path: '/translations',
    title: 'translations.title',
    icon: 'translations',
    section: 'manage',
    permission: 'can_edit_config',
    load: async () =>
      (await import('../pages/translations/translations-page.tsx')).TranslationsPage,
  },
  {
    path: '/settings',
    title: 'settings.title',
    icon: 'settings',
    section: 'manage',
    permission: 'can_edit_config',
    load: async () => (await import('../pages/settings/settings-page.tsx')).SettingsPage,
  },
  {
    path: '/audit',
    title: 'audit.title',
    icon: 'audit',
    section: 'manage',
    permission: 'can_manage_groups',
    load: async () => (await import('../pages/audit/audit-page.tsx')).AuditPage,
  },
  {
    path: '/sessions',
    title: 'sessions.title',
    icon: 'screen',
    section: null,
    load: async () => (await import('../pages/sessions/sessions-page.tsx')).SessionsPage,
  },
  {
    path: '/device',
    title: 'device.title',
    icon: 'keys',
    section: null,
    load: async () => (await import('../pages/device/device-page.tsx')).DevicePage,
  },
]
