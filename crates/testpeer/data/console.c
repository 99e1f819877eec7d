/* A freeDiameter process whose requests a test writes as lines: a PCEF, an AF, a TDF. Tests compile it.
 *
 *   LoadExtension = "console.fdx" : "FILE APPLICATION ...";
 *
 * Standard input:                        FILE, as freeDiameter's own dictionary reads it:
 *   peer pcf.example                       Credit-Control-Answer {        a message that was received
 *   send Credit-Control-Request 16777238     Result-Code = 2001
 *   Session-Id = 706777                      Default-EPS-Bearer-QoS = {
 *   Subscription-Id = {                        QoS-Class-Identifier = 5
 *   Subscription-Id-Type = 1                 }
 *   }                                        Charging-Rule-Name = "x"     or 0x.. of bytes that are no text
 *   end                                    }
 *
 * `peer` waits until the connection to a peer is open. Bytes and texts are hexadecimal, numbers decimal; Origin-Host and
 * Origin-Realm are added. Requests that arrive are answered with success. AVPs that the dictionary lacks are `?code`. */

#include <ctype.h>
#include <freeDiameter/extension.h>
#include <pthread.h>

#define VENDOR_3GPP 10415u
#define DEEPEST 16

static char file[256];
static pthread_t reader;

static struct dict_object *find(enum dict_object_type type, int by, const void *what) {
  struct dict_object *found = NULL;
  CHECK_FCT_DO(fd_dict_search(fd_g_config->cnf_dict, type, by, what, &found, ENOENT), return NULL);
  return found;
}

/* ---- what is received ---- */

static int is_text(const struct avp_hdr *avp) {
  for (size_t i = 0; i < avp->avp_value->os.len; i++)
    if (!isprint(avp->avp_value->os.data[i]) || avp->avp_value->os.data[i] == '"') return 0;
  return avp->avp_value->os.len > 0;
}

static void print_value(FILE *out, struct avp_hdr *avp, enum dict_avp_basetype type) {
  switch (type) {
    case AVP_TYPE_INTEGER32: fprintf(out, "%d", avp->avp_value->i32); break;
    case AVP_TYPE_UNSIGNED32: fprintf(out, "%u", avp->avp_value->u32); break;
    case AVP_TYPE_INTEGER64: fprintf(out, "%lld", (long long)avp->avp_value->i64); break;
    case AVP_TYPE_UNSIGNED64: fprintf(out, "%llu", (unsigned long long)avp->avp_value->u64); break;
    case AVP_TYPE_OCTETSTRING:
      if (is_text(avp)) {
        fprintf(out, "\"%.*s\"", (int)avp->avp_value->os.len, (char *)avp->avp_value->os.data);
        break;
      }
      fputs("0x", out);
      for (size_t i = 0; i < avp->avp_value->os.len; i++) fprintf(out, "%02x", avp->avp_value->os.data[i]);
      break;
    default: fputs("?", out);
  }
}

static void print_avps(FILE *out, msg_or_avp *in, int depth) {
  msg_or_avp *at = NULL;
  CHECK_FCT_DO(fd_msg_browse(in, MSG_BRW_FIRST_CHILD, &at, NULL), return);
  while (at) {
    struct avp_hdr *header = NULL;
    struct dict_object *model = NULL;
    struct dict_avp_data data;
    CHECK_FCT_DO(fd_msg_avp_hdr(at, &header), return);
    CHECK_FCT_DO(fd_msg_model(at, &model), return);
    fprintf(out, "%*s", 2 * depth, "");
    if (!model) {
      fprintf(out, "?%u\n", header->avp_code);
    } else {
      CHECK_FCT_DO(fd_dict_getval(model, &data), return);
      fprintf(out, "%s = ", data.avp_name);
      if (data.avp_basetype == AVP_TYPE_GROUPED) {
        fputs("{\n", out);
        if (depth < DEEPEST) print_avps(out, at, depth + 1);
        fprintf(out, "%*s}\n", 2 * depth, "");
      } else {
        print_value(out, header, data.avp_basetype);
        fputc('\n', out);
      }
    }
    CHECK_FCT_DO(fd_msg_browse(at, MSG_BRW_NEXT, &at, NULL), return);
  }
}

/* One write for each message: the test sees whole ones. */
static void print(struct msg *message) {
  static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
  struct dict_object *model = NULL;
  struct dict_cmd_data command;
  char *text = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&text, &length), *to;
  CHECK_FCT_DO(fd_msg_model(message, &model), return);
  CHECK_FCT_DO(fd_dict_getval(model, &command), return);
  CHECK_FCT_DO(fd_msg_parse_dict(message, fd_g_config->cnf_dict, NULL), return);
  fprintf(out, "%s {\n", command.cmd_name);
  print_avps(out, message, 1);
  fputs("}\n", out);
  fclose(out);
  pthread_mutex_lock(&turn);
  if ((to = fopen(file, "a"))) {
    fwrite(text, 1, length, to);
    fclose(to);
  }
  pthread_mutex_unlock(&turn);
  free(text);
}

static void on_answer(void *data, struct msg **message) {
  (void)data;
  print(*message);
  CHECK_FCT_DO(fd_msg_free(*message), return);
  *message = NULL;
}

/* Of the AVPs of a request, the value of the one of this name; 0: none. */
static int value_of(struct msg *request, const char *name, union avp_value *value) {
  struct avp *found = NULL;
  struct avp_hdr *header = NULL;
  struct dict_object *model = find(DICT_AVP, AVP_BY_NAME_ALL_VENDORS, name);
  if (!model || fd_msg_search_avp(request, model, &found) || !found) return 0;
  if (fd_msg_avp_hdr(found, &header) || !header->avp_value) return 0;
  *value = *header->avp_value;
  return 1;
}

static int add(struct msg *message, const char *name, union avp_value *value) {
  struct avp *avp = NULL;
  CHECK_FCT(fd_msg_avp_new(find(DICT_AVP, AVP_BY_NAME_ALL_VENDORS, name), 0, &avp));
  CHECK_FCT(fd_msg_avp_setvalue(avp, value));
  return fd_msg_avp_add(message, MSG_BRW_LAST_CHILD, avp);
}

static int on_request(struct msg **message, struct avp *avp, struct session *session, void *data,
                      enum disp_action *action) {
  struct msg_hdr *header = NULL;
  union avp_value application, type, number;
  int is_credit;
  (void)avp; (void)session; (void)data; (void)action;
  print(*message);
  CHECK_FCT(fd_msg_hdr(*message, &header));
  /* A CCA has both of its CCR (RFC 8506, 3.2). */
  is_credit = header->msg_code == 272 && value_of(*message, "CC-Request-Type", &type) &&
              value_of(*message, "CC-Request-Number", &number);
  application.u32 = header->msg_appl;
  CHECK_FCT(fd_msg_new_answer_from_req(fd_g_config->cnf_dict, message, 0));
  CHECK_FCT(fd_msg_rescode_set(*message, "DIAMETER_SUCCESS", NULL, NULL, 1));
  /* RAA and ASA have none. */
  if (header->msg_code != 258 && header->msg_code != 274)
    CHECK_FCT(add(*message, "Auth-Application-Id", &application));
  if (is_credit) {
    CHECK_FCT(add(*message, "CC-Request-Type", &type));
    CHECK_FCT(add(*message, "CC-Request-Number", &number));
  }
  return fd_msg_send(message, NULL, NULL);
}

/* ---- what is sent ---- */

static size_t unhex(const char *text, uint8_t *bytes, size_t most) {
  size_t length = 0;
  unsigned byte;
  for (; length < most && sscanf(text + 2 * length, "%2x", &byte) == 1; length++) bytes[length] = (uint8_t)byte;
  return length;
}

static struct avp *new_avp(const char *name, const char *text) {
  struct dict_object *model = find(DICT_AVP, AVP_BY_NAME_ALL_VENDORS, name);
  struct dict_avp_data data;
  struct avp *avp = NULL;
  union avp_value value;
  uint8_t bytes[2048];
  if (!model) {
    fd_log_error("console: the dictionary lacks %s", name);
    return NULL;
  }
  CHECK_FCT_DO(fd_dict_getval(model, &data), return NULL);
  CHECK_FCT_DO(fd_msg_avp_new(model, 0, &avp), return NULL);
  switch (data.avp_basetype) {
    case AVP_TYPE_GROUPED: return avp;
    case AVP_TYPE_INTEGER32: value.i32 = (int32_t)strtol(text, NULL, 10); break;
    case AVP_TYPE_UNSIGNED32: value.u32 = (uint32_t)strtoul(text, NULL, 10); break;
    case AVP_TYPE_INTEGER64: value.i64 = strtoll(text, NULL, 10); break;
    case AVP_TYPE_UNSIGNED64: value.u64 = strtoull(text, NULL, 10); break;
    default:
      value.os.data = bytes;
      value.os.len = unhex(text, bytes, sizeof bytes);
  }
  CHECK_FCT_DO(fd_msg_avp_setvalue(avp, &value), return NULL);
  return avp;
}

/* Reads lines up to `end`, and sends the request. */
static void send_request(const char *command, uint32_t application) {
  char line[8192], name[128], value[8192];
  struct msg *message = NULL;
  struct msg_hdr *header = NULL;
  struct dict_object *model = find(DICT_COMMAND, CMD_BY_NAME, command);
  msg_or_avp *parents[DEEPEST];
  int depth = 0, is_first = 1;
  CHECK_FCT_DO(fd_msg_new(model, MSGFL_ALLOC_ETEID, &message), return);
  CHECK_FCT_DO(fd_msg_hdr(message, &header), return);
  header->msg_appl = application;
  parents[0] = message;
  while (fgets(line, sizeof line, stdin) && strncmp(line, "end", 3)) {
    struct avp *avp;
    if (line[0] == '}') {
      if (depth > 0) depth--;
      continue;
    }
    if (sscanf(line, "%127s = %8191s", name, value) != 2 || !(avp = new_avp(name, value))) continue;
    CHECK_FCT_DO(fd_msg_avp_add(parents[depth], MSG_BRW_LAST_CHILD, avp), return);
    if (is_first) CHECK_FCT_DO(fd_msg_add_origin(message, 0), return);
    is_first = 0;
    if (value[0] == '{' && depth + 1 < DEEPEST) parents[++depth] = avp;
  }
  CHECK_FCT_DO(fd_msg_send(&message, on_answer, NULL), return);
}

static void *read_lines(void *data) {
  char line[512], name[256];
  unsigned application;
  (void)data;
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "peer %255s", name) == 1) {
      struct peer_hdr *peer = NULL;
      while (fd_peer_getbyid(name, strlen(name), 1, &peer) || !peer || fd_peer_get_state(peer) != STATE_OPEN)
        usleep(20000);
    } else if (sscanf(line, "send %255s %u", name, &application) == 2) {
      send_request(name, application);
    }
  }
  return NULL;
}

/* Commands of Sd that the dictionary may lack (TS 29.212 §5b.6). */
static int add_command(struct dict_object *application, const char *name, uint8_t flags) {
  struct dict_cmd_data data = {8388637, (char *)name, CMD_FLAG_REQUEST | CMD_FLAG_PROXIABLE | CMD_FLAG_ERROR, flags};
  if (find(DICT_COMMAND, CMD_BY_NAME, name)) return 0;
  return fd_dict_new(fd_g_config->cnf_dict, DICT_COMMAND, &data, application, NULL);
}

/* Gx and Rx share commands with applications of the IETF, and require fewer AVPs (TS 29.212, 5.6.2; TS 29.214, 5.6.1). */
static int require_not(const char *command, const char *avp) {
  struct dict_rule_request wanted;
  struct dict_object *rule = NULL;
  wanted.rule_parent = find(DICT_COMMAND, CMD_BY_NAME, command);
  wanted.rule_avp = find(DICT_AVP, AVP_BY_NAME_ALL_VENDORS, avp);
  if (!wanted.rule_parent || !wanted.rule_avp) return 0;
  CHECK_FCT(fd_dict_search(fd_g_config->cnf_dict, DICT_RULE, RULE_BY_AVP_AND_PARENT, &wanted, &rule, 0));
  return rule ? fd_dict_delete(rule) : 0;
}

static int serve(uint32_t id) {
  struct dict_object *vendor, *application = NULL;
  struct dict_vendor_data vendor_data = {VENDOR_3GPP, "3GPP"};
  struct dict_application_data data = {id, "console"};
  vendor_id_t vendor_id = VENDOR_3GPP;
  struct disp_when when;
  char name[32];
  memset(&when, 0, sizeof when);
  snprintf(name, sizeof name, "console %u", id);
  data.application_name = name;
  vendor = find(DICT_VENDOR, VENDOR_BY_ID, &vendor_id);
  if (!vendor) CHECK_FCT(fd_dict_new(fd_g_config->cnf_dict, DICT_VENDOR, &vendor_data, NULL, &vendor));
  application = find(DICT_APPLICATION, APPLICATION_BY_ID, &id);
  if (!application) CHECK_FCT(fd_dict_new(fd_g_config->cnf_dict, DICT_APPLICATION, &data, vendor, &application));
  CHECK_FCT(fd_disp_app_support(application, vendor, 1, 0));
  CHECK_FCT(add_command(application, "TDF-Session-Request", CMD_FLAG_REQUEST | CMD_FLAG_PROXIABLE));
  CHECK_FCT(add_command(application, "TDF-Session-Answer", CMD_FLAG_PROXIABLE));
  when.app = application;
  return fd_disp_register(on_request, DISP_HOW_APPID, &when, NULL, NULL);
}

static int entry(char *arguments) {
  char *rest = NULL, *word = strtok_r(arguments, " ", &rest);
  snprintf(file, sizeof file, "%s", word ? word : "/dev/stdout");
  CHECK_FCT(require_not("Credit-Control-Request", "Service-Context-Id"));
  CHECK_FCT(require_not("AA-Request", "Auth-Request-Type"));
  while ((word = strtok_r(NULL, " ", &rest))) CHECK_FCT(serve((uint32_t)strtoul(word, NULL, 10)));
  CHECK_POSIX(pthread_create(&reader, NULL, read_lines, NULL));
  return 0;
}

EXTENSION_ENTRY("test_console", entry, "dict_nasreq", "dict_dcca", "dict_dcca_3gpp")
