/* Rx (TS 29.214) as a freeDiameter extension: an AF or a PCF that is a freeDiameter process. Tests compile it.
 *
 *   LoadExtension = "rx.fdx" : "af BSF";   waits for the peer BSF, then AAR, a RAR of the PCF, STR
 *   LoadExtension = "rx.fdx" : "brief-af PCF";  the same without a RAR
 *   LoadExtension = "rx.fdx" : "pcf";      answers AAR and STR; a RAR after each AAR
 *
 * What happens is said on standard output, a line each: `AAA 2001 pcf.example`. */

#include <freeDiameter/extension.h>
#include <pthread.h>
#include <semaphore.h>

#define RX 16777236u
#define VENDOR_3GPP 10415u

static struct dict_object *rx;
static char bsf[128];
static pthread_t client;
static sem_t answered, asked;

static struct dict_object *command(const char *name) {
  struct dict_object *found = NULL;
  CHECK_FCT_DO(fd_dict_search(fd_g_config->cnf_dict, DICT_COMMAND, CMD_BY_NAME, name, &found, ENOENT), return NULL);
  return found;
}

static struct dict_object *model(const char *name) {
  struct dict_object *found = NULL;
  CHECK_FCT_DO(
      fd_dict_search(fd_g_config->cnf_dict, DICT_AVP, AVP_BY_NAME_ALL_VENDORS, name, &found, ENOENT), return NULL);
  return found;
}

static void put(struct msg *to, const char *name, union avp_value *value, int first) {
  struct avp *avp = NULL;
  CHECK_FCT_DO(fd_msg_avp_new(model(name), 0, &avp), return);
  CHECK_FCT_DO(fd_msg_avp_setvalue(avp, value), return);
  CHECK_FCT_DO(fd_msg_avp_add(to, first ? MSG_BRW_FIRST_CHILD : MSG_BRW_LAST_CHILD, avp), return);
}

static void put_text(struct msg *to, const char *name, const void *text, size_t length, int first) {
  union avp_value value;
  value.os.data = (uint8_t *)text;
  value.os.len = length;
  put(to, name, &value, first);
}

static void put_number(struct msg *to, const char *name, uint32_t number) {
  union avp_value value;
  value.u32 = number;
  put(to, name, &value, 0);
}

static struct avp_hdr *find(struct msg *in, const char *name) {
  struct avp *avp = NULL;
  struct avp_hdr *header = NULL;
  CHECK_FCT_DO(fd_msg_search_avp(in, model(name), &avp), return NULL);
  if (avp) CHECK_FCT_DO(fd_msg_avp_hdr(avp, &header), return NULL);
  return header;
}

static struct msg *request(const char *name) {
  struct msg *message = NULL;
  struct msg_hdr *header = NULL;
  CHECK_FCT_DO(fd_msg_new(command(name), MSGFL_ALLOC_ETEID, &message), return NULL);
  CHECK_FCT_DO(fd_msg_hdr(message, &header), return NULL);
  header->msg_appl = RX;
  return message;
}

static void say(const char *what, struct msg *message) {
  struct avp_hdr *result = find(message, "Result-Code"), *origin = find(message, "Origin-Host");
  printf("%s %u %.*s\n", what, result ? result->avp_value->u32 : 0, origin ? (int)origin->avp_value->os.len : 0,
         origin ? (char *)origin->avp_value->os.data : "");
  fflush(stdout);
}

/* Answers with success. */
static void answer(struct msg **message, int authorizes) {
  CHECK_FCT_DO(fd_msg_new_answer_from_req(fd_g_config->cnf_dict, message, 0), return);
  CHECK_FCT_DO(fd_msg_rescode_set(*message, "DIAMETER_SUCCESS", NULL, NULL, 1), return);
  if (authorizes) {
    put_number(*message, "Auth-Application-Id", RX);
    put_number(*message, "Auth-Request-Type", 2);
  }
  CHECK_FCT_DO(fd_msg_send(message, NULL, NULL), return);
}

/* ---- PCF ---- */

static void on_raa(void *data, struct msg **message) {
  (void)data;
  say("RAA", *message);
  CHECK_FCT_DO(fd_msg_free(*message), return);
  *message = NULL;
}

static int on_aar(struct msg **message, struct avp *avp, struct session *session, void *data, enum disp_action *action) {
  struct avp_hdr *id = find(*message, "Session-Id"), *host = find(*message, "Origin-Host"),
                 *realm = find(*message, "Origin-Realm");
  struct msg *back = request("Re-Auth-Request");
  (void)avp; (void)session; (void)data; (void)action;
  say("AAR", *message);
  put_text(back, "Session-Id", id->avp_value->os.data, id->avp_value->os.len, 1);
  CHECK_FCT(fd_msg_add_origin(back, 0));
  put_text(back, "Destination-Realm", realm->avp_value->os.data, realm->avp_value->os.len, 0);
  put_text(back, "Destination-Host", host->avp_value->os.data, host->avp_value->os.len, 0);
  put_number(back, "Auth-Application-Id", RX);
  put_number(back, "Re-Auth-Request-Type", 0);
  answer(message, 1);
  CHECK_FCT(fd_msg_send(&back, on_raa, NULL));
  return 0;
}

static int on_str(struct msg **message, struct avp *avp, struct session *session, void *data, enum disp_action *action) {
  (void)avp; (void)session; (void)data; (void)action;
  say("STR", *message);
  answer(message, 0);
  return 0;
}

/* ---- AF ---- */

static int on_rar(struct msg **message, struct avp *avp, struct session *session, void *data, enum disp_action *action) {
  (void)avp; (void)session; (void)data; (void)action;
  say("RAR", *message);
  answer(message, 0);
  sem_post(&asked);
  return 0;
}

static void on_answer(void *data, struct msg **message) {
  say((const char *)data, *message);
  CHECK_FCT_DO(fd_msg_free(*message), return);
  *message = NULL;
  sem_post(&answered);
}

static int waits;

static void *be_an_af(void *data) {
  static const uint8_t address[] = {10, 0, 0, 1};
  struct peer_hdr *peer = NULL;
  struct msg *message;
  struct session *session = NULL;
  uint8_t *id = NULL, kept[256];
  size_t length = 0;
  (void)data;
  while (fd_peer_getbyid(bsf, strlen(bsf), 1, &peer) || !peer || fd_peer_get_state(peer) != STATE_OPEN) usleep(20000);

  message = request("AA-Request");
  CHECK_FCT_DO(fd_msg_new_session(message, (os0_t) "rx", 2), return NULL);
  CHECK_FCT_DO(fd_msg_sess_get(fd_g_config->cnf_dict, message, &session, NULL), return NULL);
  CHECK_FCT_DO(fd_sess_getsid(session, &id, &length), return NULL);
  if (length > sizeof kept) return NULL;
  memcpy(kept, id, length);
  CHECK_FCT_DO(fd_msg_add_origin(message, 0), return NULL);
  put_text(message, "Destination-Realm", "example.org", 11, 0);
  put_number(message, "Auth-Application-Id", RX);
  put_number(message, "Auth-Request-Type", 2);
  put_text(message, "Framed-IP-Address", address, 4, 0);
  CHECK_FCT_DO(fd_msg_send(&message, on_answer, "AAA"), return NULL);
  sem_wait(&answered);
  if (waits) sem_wait(&asked);

  message = request("Session-Termination-Request");
  put_text(message, "Session-Id", kept, length, 1);
  CHECK_FCT_DO(fd_msg_add_origin(message, 0), return NULL);
  put_text(message, "Destination-Realm", "example.org", 11, 0);
  put_number(message, "Auth-Application-Id", RX);
  put_number(message, "Termination-Cause", 1);
  CHECK_FCT_DO(fd_msg_send(&message, on_answer, "STA"), return NULL);
  return NULL;
}

static int entry(char *role) {
  vendor_id_t id = VENDOR_3GPP;
  struct dict_vendor_data vendor_data = {VENDOR_3GPP, "3GPP"};
  struct dict_application_data application = {RX, "Rx"};
  struct dict_object *vendor = NULL;
  struct disp_when when;
  memset(&when, 0, sizeof when);
  CHECK_FCT(fd_dict_search(fd_g_config->cnf_dict, DICT_VENDOR, VENDOR_BY_ID, &id, &vendor, 0));
  if (!vendor) CHECK_FCT(fd_dict_new(fd_g_config->cnf_dict, DICT_VENDOR, &vendor_data, NULL, &vendor));
  CHECK_FCT(fd_dict_new(fd_g_config->cnf_dict, DICT_APPLICATION, &application, vendor, &rx));
  CHECK_FCT(fd_disp_app_support(rx, vendor, 1, 0));
  when.app = rx;
  if (role && ((waits = sscanf(role, "af %127s", bsf) == 1) || sscanf(role, "brief-af %127s", bsf) == 1)) {
    sem_init(&answered, 0, 0);
    sem_init(&asked, 0, 0);
    when.command = command("Re-Auth-Request");
    CHECK_FCT(fd_disp_register(on_rar, DISP_HOW_CC, &when, NULL, NULL));
    CHECK_POSIX(pthread_create(&client, NULL, be_an_af, NULL));
  } else {
    when.command = command("AA-Request");
    CHECK_FCT(fd_disp_register(on_aar, DISP_HOW_CC, &when, NULL, NULL));
    when.command = command("Session-Termination-Request");
    CHECK_FCT(fd_disp_register(on_str, DISP_HOW_CC, &when, NULL, NULL));
  }
  return 0;
}

EXTENSION_ENTRY("test_rx", entry, "dict_nasreq")
