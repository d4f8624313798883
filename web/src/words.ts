// What the page says, in English and Chinese.

const english = {
  devices: "Devices",
  journeys: "Claims and pods",
  queue: "Waiting",
  health: "Taints and health",
  usage: "Usage",
  views: "Views",
  skip: "Skip to the content",
  language: "中文",
  languageHint: "Switch to Chinese",
  theme: "Light or dark",
  theme_auto: "Theme: system",
  theme_light: "Theme: light",
  theme_dark: "Theme: dark",
  signOut: "Sign out",
  signIn: "Sign in",
  token: "Bearer token",
  tokenHint:
    "Run dibs open on the server's machine and follow the link that it prints, or paste a token of the API here. It stays in this tab.",
  tokenWanted: "A token is wanted.",
  refused: "The server does not accept this token: it is wrong, or the session has ended.",
  badCode: "This link does not work:",
  loading: "Loading …",
  lost: "The server cannot be reached; trying again …",
  notAllowed: "You may not see all of this:",
  onlyNamespace: "Only this namespace",
  onlyNamespaceHint: "Only one namespace is seen: devices that others hold look free.",
  show: "Show",
  absent: "This server has none of these kinds:",
  free: "free",
  held: "held",
  blocked: "blocked",
  blockedHint: "other parts of the same hardware are held",
  gone: "no slice has it any more",
  tainted: "tainted",
  unhealthy: "unhealthy",
  node: "Node",
  nodes: "nodes",
  pool: "Pool",
  device: "Device",
  deviceCount: "devices",
  driver: "Driver",
  state: "State",
  holder: "Held by",
  nobody: "nobody",
  forPods: "for",
  attributes: "Attributes",
  capacity: "Capacity",
  memoryUsed: "Memory used",
  taints: "Taints",
  none: "none",
  since: "since",
  find: "Find",
  findDevices: "Node, device, holder or state",
  findJourneys: "Name, namespace, node, class or stage",
  mapLabel:
    "Map of devices. Arrow keys go from device to device, Home and End to the first and the last.",
  mapHint: "Choose a device with the pointer or the arrow keys.",
  noDevices: "No devices: no driver has published a ResourceSlice.",
  noMatch: "Nothing matches.",
  notReady: "not ready",
  cordoned: "cordoned",
  all: "All",
  claims: "Claims",
  pods: "Pods",
  kind: "Kind",
  claim: "claim",
  pod: "pod",
  namespace: "Namespace",
  class: "Class",
  stages: "Stages",
  stage_created: "created",
  stage_allocated: "allocated",
  stage_scheduled: "scheduled",
  stage_reserved: "reserved",
  stage_prepared: "prepared",
  stage_running: "running",
  stage_ended: "ended",
  stage_going: "going",
  notYet: "not yet",
  noTime: "time not told",
  took: "after",
  stagesHint:
    "Times of what began while this page was open are as the page saw them; those before are the server's, in whole seconds.",
  noJourneys: "No claims and no pods.",
  nothingWaits: "Nothing waits.",
  waitsFor: "Waiting for",
  waitsAllocation: "no pod that uses it has been placed yet",
  waitsScheduler: "no scheduler has looked at it yet",
  waitsNode: "its node has not said anything yet",
  finalizers: "finalizers",
  schedulingGates: "scheduling gates",
  moreBy: "Everything that speaks against it:",
  deviceTaints: "Devices with taints",
  taintRules: "Device taint rules",
  sick: "Unhealthy devices",
  sickNodes: "Nodes with trouble",
  rule: "Rule",
  fromSlice: "its slice",
  opaque: "chooses by class or expression: its devices are not marked on this page",
  selects: "Selects",
  everything: "everything",
  trouble: "Trouble",
  allWell: "none",
  usageNote:
    "The last hour, as the server has recorded it. A part of a device counts as the part that it is, except under Now.",
  byClass: "Devices held, by class",
  byNamespace: "Devices held, by namespace",
  noRecords: "The server tells nothing of usage:",
  deviceHours: "Device-hours",
  utilisation: "Utilisation",
  span: "Time",
  span_1h: "last hour",
  span_1d: "last day",
  span_7d: "last 7 days",
  span_30d: "last 30 days",
  columns: "Rows by",
  downloadCsv: "Download CSV",
  other: "others",
  now: "Now",
  most: "Most",
  noUsage: "No device is held.",
  seconds: "s",
  minutes: "min",
  hours: "h",
  days: "d",
  selected: "Selected",
  rows: "rows",
};

export type Word = keyof typeof english;

const chinese: Record<Word, string> = {
  devices: "设备",
  journeys: "资源声明与 Pod",
  queue: "等待中",
  health: "污点与健康",
  usage: "使用情况",
  views: "视图",
  skip: "跳到内容",
  language: "English",
  languageHint: "切换到英文",
  theme: "浅色或深色",
  theme_auto: "主题：跟随系统",
  theme_light: "主题：浅色",
  theme_dark: "主题：深色",
  signOut: "退出",
  signIn: "登录",
  token: "Bearer 令牌",
  tokenHint:
    "在服务器所在的机器上运行 dibs open 并打开它给出的链接，或在此粘贴 API 令牌。令牌只留在本标签页中。",
  tokenWanted: "请输入令牌。",
  refused: "服务器不接受此令牌：令牌有误，或会话已结束。",
  badCode: "此链接无效：",
  loading: "正在加载……",
  lost: "无法连接服务器，正在重试……",
  notAllowed: "您无权查看全部内容：",
  onlyNamespace: "只看此命名空间",
  onlyNamespaceHint: "只能看到一个命名空间：被其他命名空间占用的设备看起来是空闲的。",
  show: "显示",
  absent: "此服务器没有这些类型：",
  free: "空闲",
  held: "占用",
  blocked: "受阻",
  blockedHint: "同一硬件的其他部分已被占用",
  gone: "已不在任何切片中",
  tainted: "有污点",
  unhealthy: "不健康",
  node: "节点",
  nodes: "个节点",
  pool: "池",
  device: "设备",
  deviceCount: "个设备",
  driver: "驱动",
  state: "状态",
  holder: "占用者",
  nobody: "无",
  forPods: "用于",
  attributes: "属性",
  capacity: "容量",
  memoryUsed: "已用内存",
  taints: "污点",
  none: "无",
  since: "自",
  find: "查找",
  findDevices: "节点、设备、占用者或状态",
  findJourneys: "名称、命名空间、节点、类或阶段",
  mapLabel: "设备图。方向键在设备间移动，Home 和 End 到第一个和最后一个。",
  mapHint: "用指针或方向键选择设备。",
  noDevices: "没有设备：没有驱动发布 ResourceSlice。",
  noMatch: "没有匹配项。",
  notReady: "未就绪",
  cordoned: "已封锁",
  all: "全部",
  claims: "声明",
  pods: "Pod",
  kind: "类型",
  claim: "声明",
  pod: "Pod",
  namespace: "命名空间",
  class: "类",
  stages: "阶段",
  stage_created: "已创建",
  stage_allocated: "已分配",
  stage_scheduled: "已调度",
  stage_reserved: "已预留",
  stage_prepared: "已准备",
  stage_running: "运行中",
  stage_ended: "已结束",
  stage_going: "正在删除",
  notYet: "尚未",
  noTime: "时间未知",
  took: "用时",
  stagesHint: "页面打开后开始的对象，其时间由页面观察得到；更早的时间来自服务器，以整秒计。",
  noJourneys: "没有资源声明，也没有 Pod。",
  nothingWaits: "没有等待的对象。",
  waitsFor: "已等待",
  waitsAllocation: "使用它的 Pod 尚未被调度",
  waitsScheduler: "还没有调度器处理它",
  waitsNode: "它的节点尚未报告",
  finalizers: "终结器",
  schedulingGates: "调度门控",
  moreBy: "查看全部阻碍原因：",
  deviceTaints: "有污点的设备",
  taintRules: "设备污点规则",
  sick: "不健康的设备",
  sickNodes: "有问题的节点",
  rule: "规则",
  fromSlice: "来自切片",
  opaque: "按类或表达式选择：本页不标记其设备",
  selects: "选择",
  everything: "全部",
  trouble: "问题",
  allWell: "无",
  usageNote: "服务器记录的最近一小时。设备的一部分按其份额计算，“现在”一列除外。",
  noRecords: "服务器没有给出使用情况：",
  deviceHours: "设备小时",
  utilisation: "利用率",
  span: "时间",
  span_1h: "最近一小时",
  span_1d: "最近一天",
  span_7d: "最近 7 天",
  span_30d: "最近 30 天",
  columns: "分组",
  downloadCsv: "下载 CSV",
  byClass: "按类统计的占用设备",
  byNamespace: "按命名空间统计的占用设备",
  other: "其他",
  now: "现在",
  most: "最多",
  noUsage: "没有被占用的设备。",
  seconds: "秒",
  minutes: "分",
  hours: "时",
  days: "天",
  selected: "已选择",
  rows: "行",
};

export type Language = "en" | "zh";

let language: Language = (() => {
  try {
    const kept = localStorage.getItem("dibs.language");
    if (kept === "en" || kept === "zh") return kept;
  } catch {
    // Then the browser's.
  }
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
})();

export const currentLanguage = () => language;

export function setLanguage(next: Language): void {
  language = next;
  document.documentElement.lang = next === "zh" ? "zh-CN" : "en";
  try {
    localStorage.setItem("dibs.language", next);
  } catch {
    // It holds until the tab is loaded again.
  }
}

export const t = (word: Word): string => (language === "zh" ? chinese : english)[word];

/** "0.13 s", "4 s", "2 min 5 s", "3 h 2 min". */
export function span(milliseconds: number, exact: boolean): string {
  const seconds = milliseconds / 1000;
  if (exact && seconds < 0.005) return `< 0.01 ${t("seconds")}`;
  if (exact && seconds < 10) return `${seconds.toFixed(2)} ${t("seconds")}`;
  if (!exact && seconds < 1) return `< 1 ${t("seconds")}`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} ${t("seconds")}`;
  if (whole < 3600)
    return `${Math.floor(whole / 60)} ${t("minutes")} ${whole % 60} ${t("seconds")}`;
  if (whole < 86400)
    return `${Math.floor(whole / 3600)} ${t("hours")} ${Math.floor((whole % 3600) / 60)} ${t("minutes")}`;
  return `${Math.floor(whole / 86400)} ${t("days")} ${Math.floor((whole % 86400) / 3600)} ${t("hours")}`;
}

const formatted = (at: number, how: Intl.DateTimeFormatOptions): string =>
  new Intl.DateTimeFormat(language === "zh" ? "zh-CN" : "en-GB", how).format(at);

export const clock = (at: number): string =>
  formatted(at, { dateStyle: "short", timeStyle: "medium" });

export const timeOfDay = (at: number): string =>
  formatted(at, { hour: "2-digit", minute: "2-digit" });
